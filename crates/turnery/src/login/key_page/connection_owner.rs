//! Checks that a local connection was opened by a process of the same user (ELIC-8). Only Linux reports the
//! owner of a connection; elsewhere the unguessable path is the only protection.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
};

/// Connection tables of Linux, by the address family of the other socket.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Prefix of an IPv4-mapped address in the IPv6 table, in native byte order.
const MAPPED: [[u8; 4]; 3] = [[0; 4], [0; 4], [0, 0, 0xff, 0xff]];

/// Returns true if the connection from `from` to `to` was opened by the user of this process. Connections missing
/// from the tables were not.
pub(super) fn is_own_connection(from: SocketAddr, to: SocketAddr) -> bool {
    if cfg!(not(target_os = "linux")) {
        return true;
    }
    let us = rustix::process::geteuid().as_raw();
    let mut tables = TABLES
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    tables.find_map(|table| connection_owner(&table, from, to)) == Some(us)
}

/// Returns the user id of the socket at `from`, according to a table.
fn connection_owner(table: &str, from: SocketAddr, to: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_it = matches_address(fields.next()?, from) && matches_address(fields.next()?, to);
        let user = fields.nth(4)?;
        is_it.then(|| user.parse().ok()).flatten()
    })
}

/// Returns true if `name` is the table's form of an IPv4 address, plain or IPv4-mapped. IPv6 addresses never
/// match.
fn matches_address(name: &str, address: SocketAddr) -> bool {
    let IpAddr::V4(ip) = address.ip() else {
        return false;
    };
    let word = |bytes| format!("{:08X}", u32::from_ne_bytes(bytes));
    let four = format!("{}:{:04X}", word(ip.octets()), address.port());
    let six = || MAPPED.map(word).concat() + &four;
    name == four || name == six()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    /// Port 40000 is 9C40, port 8080 is 1F90; in the reverse direction it is this process's own socket.
    // proves: ELIC-8
    #[test]
    #[cfg(target_endian = "little")]
    fn owner_is_read_from_connection_table() {
        let from = "127.0.0.1:40000".parse().unwrap();
        let to = "127.0.0.1:8080".parse().unwrap();
        let ours = "   0: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     7        0 1 1 0 20 4 30 10 -1\n";
        let other = "   1: 0100007F:9C41 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     8        0 2 1 0 20 4 30 10 -1\n";
        let four = "   2: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 20 4 30 10 -1\n";
        let six = "   0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 4 1 0 20 4 30 10 -1\n";
        for (lines, expected) in [
            (vec![], None),
            (vec![ours, other], None),
            (vec![ours, other, four], Some(1000)),
            (vec![six], Some(1001)),
            (vec!["   0: 0100007F:9C40 0100007F:1F90\n"], None),
            (vec!["nonsense\n", "\n"], None),
        ] {
            let table = format!("{HEAD}{}", lines.concat());
            assert_eq!(connection_owner(&table, from, to), expected, "{table}");
        }
    }

    // proves: ELIC-8
    #[test]
    #[cfg(target_os = "linux")]
    fn own_connection_is_recognised_and_unknown_is_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let stream = std::net::TcpStream::connect(to).unwrap();
        let from = stream.local_addr().unwrap();
        assert!(is_own_connection(from, to));
        let nobody = SocketAddr::new(from.ip(), 1);
        assert!(!is_own_connection(nobody, to));
    }
}
