//! Parses the address of a database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE`.

use percent_encoding::percent_decode_str;
use std::{fmt, fs, net::IpAddr, path::PathBuf, str::FromStr as _, time::Duration};
use tokio_postgres::config::{ChannelBinding, Config, Host, SslMode};

/// Schema of the tables if the address names none.
const DEFAULT_SCHEMA: &str = "turnery";

/// Longest time until a connection to one server is made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time without an acknowledgement by the server's machine after which a connection is given up.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(20);

/// Longest name of a schema that PostgreSQL does not cut off. Unit: bytes.
const MAX_NAME_BYTES: usize = 63;

/// Address of a database and the schema with the tables of the store. Its text has no password.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    pub(super) schema: String,
    /// File with the certificates that the server's must be signed by; `None` for those of the system.
    pub(super) root_certificates: Option<PathBuf>,
}

impl PostgresAddress {
    /// Parses an address. Takes a password that it lacks from the variable `PGPASSWORD` or from a password file:
    /// parameter `passfile`, `PGPASSFILE`, or `.pgpass` in the home folder. `lookup` returns the value of an
    /// environment variable.
    ///
    /// The error describes what is wrong without any part of the address, which may have a password.
    pub fn parse(
        address: &str,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, PostgresAddressError> {
        let wrong = |what: &str| PostgresAddressError(what.to_owned());
        let scheme = ["postgres://", "postgresql://"];
        if !scheme.iter().any(|it| address.starts_with(it)) {
            return Err(wrong("it does not start with postgres://"));
        }
        let (place, parameters) = address.split_once('?').unwrap_or((address, ""));
        if parameters.contains('@') && !place.contains('@') {
            return Err(wrong(
                "the user or the password has a `?`, which is written as %3F",
            ));
        }
        let (mut schema, mut root_certificates, mut pass_file) = (None, None, None);
        let (mut known, mut is_verified, mut ssl_mode) = (Vec::new(), false, None);
        for parameter in parameters.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = parameter
                .split_once('=')
                .ok_or_else(|| wrong("a parameter has no value"))?;
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| wrong("a parameter is not UTF-8"))?;
            match name {
                "schema" => schema = Some(value.into_owned()),
                "sslrootcert" => root_certificates = Some(PathBuf::from(value.into_owned())),
                "passfile" => pass_file = Some(PathBuf::from(value.into_owned())),
                "sslmode" => {
                    is_verified = matches!(&*value, "verify-full" | "verify-ca");
                    ssl_mode = Some(match &*value {
                        "disable" => SslMode::Disable,
                        "prefer" => SslMode::Prefer,
                        "require" | "verify-ca" | "verify-full" => SslMode::Require,
                        _ => {
                            return Err(wrong(
                                "sslmode is disable, prefer, require or verify-full",
                            ));
                        }
                    });
                }
                _ => known.push(parameter),
            }
        }
        let plain = format!("{place}?{}", known.join("&"));
        // The error may quote the address.
        let mut config = Config::from_str(&plain).map_err(|_| {
            wrong(
                "it is not postgres://USER:PASSWORD@HOST:PORT/DATABASE with parameters that turnery knows; write \
                 special characters of the password as %XX",
            )
        })?;
        let schema = schema
            .or_else(|| schema_of_options(config.get_options()?))
            .unwrap_or_else(|| DEFAULT_SCHEMA.to_owned());
        if schema.is_empty() || schema.len() > MAX_NAME_BYTES || schema.contains('\0') {
            return Err(wrong(
                "the schema has no name, or one of more than 63 bytes",
            ));
        }
        if config.get_hosts().is_empty() {
            return Err(wrong("it names no host"));
        }
        let is_local = config.get_hosts().iter().all(is_local_host);
        let default_mode = match is_local {
            true => SslMode::Disable,
            false => SslMode::Require,
        };
        config.ssl_mode(ssl_mode.unwrap_or(default_mode));
        if is_verified && config.get_channel_binding() == ChannelBinding::Require {
            return Err(wrong("channel_binding=require is not supported"));
        }
        if config.get_application_name().is_none() {
            config.application_name("turnery");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE_TIMEOUT);
        }
        let mut parsed = Self {
            config,
            schema,
            root_certificates,
        };
        if parsed.config.get_password().is_none()
            && let Some(password) = parsed.find_password(pass_file, lookup)?
        {
            parsed.config.password(password);
        }
        Ok(parsed)
    }

    fn find_password(
        &self,
        pass_file: Option<PathBuf>,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<String>, PostgresAddressError> {
        if let Some(password) = lookup("PGPASSWORD") {
            return Ok(Some(password));
        }
        let named = pass_file.or_else(|| lookup("PGPASSFILE").map(PathBuf::from));
        let is_named = named.is_some();
        let usual = || lookup("HOME").map(|home| PathBuf::from(home).join(".pgpass"));
        let Some(path) = named.or_else(usual) else {
            return Ok(None);
        };
        let wrong = |what: String| PostgresAddressError(format!("{}: {what}", path.display()));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(_) if !is_named => return Ok(None),
            Err(error) => return Err(wrong(error.to_string())),
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).map_or(0, |it| it.permissions().mode());
            if mode & 0o077 != 0 {
                return Err(wrong(
                    "others can read this password file; run `chmod 600` on it".to_owned(),
                ));
            }
        }
        Ok(text.lines().find_map(|line| self.password_of_line(line)))
    }

    /// Returns the password of a line `host:port:database:user:password` of a password file, if the line is about
    /// this address.
    fn password_of_line(&self, line: &str) -> Option<String> {
        let mut fields = vec![String::new()];
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            match character {
                ':' if fields.len() < 5 => fields.push(String::new()),
                '\\' => fields.last_mut()?.extend(characters.next()),
                other => fields.last_mut()?.push(other),
            }
        }
        let (host, port) = self.first_host();
        let user = self.config.get_user().unwrap_or_default();
        let own = [&*host, &*port, self.database(), user];
        let is_own = !line.starts_with('#')
            && fields.len() == 5
            && own
                .iter()
                .zip(&fields)
                .all(|(own, field)| field == "*" || field == own);
        fields.pop().filter(|_| is_own)
    }

    fn database(&self) -> &str {
        let user = self.config.get_user();
        self.config.get_dbname().or(user).unwrap_or_default()
    }

    fn first_host(&self) -> (String, String) {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => String::new(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        (host, port.to_string())
    }
}

/// Returns the schema that the options for the server name with `-c search_path=` or `-csearch_path=`.
fn schema_of_options(options: &str) -> Option<String> {
    let mut found = options.split_ascii_whitespace().filter_map(|word| {
        let word = word.strip_prefix("-c").unwrap_or(word);
        word.strip_prefix("search_path=")
    });
    found.next_back().map(str::to_owned)
}

fn is_local_host(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|it: IpAddr| it.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = self.first_host();
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        write!(
            f,
            "{host}:{port}/{} (schema {})",
            self.database(),
            self.schema
        )
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresAddress({self})")
    }
}

/// Reason why a text is no address of a database; never contains a part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PostgresAddressError(String);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str) -> Result<PostgresAddress, PostgresAddressError> {
        PostgresAddress::parse(address, |_| None)
    }

    #[test]
    fn address_is_shown_without_password() {
        let address = parse("postgres://ann:s%3Acret@db.example:6000/team?schema=ann").unwrap();
        let shown = format!("{address} {address:?}");
        assert!(
            shown.starts_with("postgres://ann@db.example:6000/team (schema ann)"),
            "{shown}"
        );
        assert!(!shown.contains("cret"), "{shown}");
        assert_eq!(address.config.get_password(), Some(&b"s:cret"[..]));
    }

    #[test]
    fn schema_is_a_parameter_or_the_search_path() {
        for (parameters, schema) in [
            ("", "turnery"),
            ("?schema=ann", "ann"),
            ("?options=-csearch_path%3Dann", "ann"),
            ("?options=-c%20search_path%3Dbob&schema=ann", "ann"),
        ] {
            let address = parse(&format!("postgres://u@h/d{parameters}")).unwrap();
            assert_eq!(address.schema, schema, "{parameters}");
        }
    }

    #[test]
    fn only_other_machines_need_encryption() {
        for (host, parameters, mode) in [
            ("db.example", "", SslMode::Require),
            ("db.example", "?sslmode=disable", SslMode::Disable),
            ("db.example", "?sslmode=verify-full", SslMode::Require),
            ("localhost", "", SslMode::Disable),
            ("127.0.0.1", "?sslmode=require", SslMode::Require),
            ("%2Frun%2Fpostgresql", "", SslMode::Disable),
        ] {
            let address = parse(&format!("postgres://u@{host}/d{parameters}")).unwrap();
            assert_eq!(address.config.get_ssl_mode(), mode, "{host}{parameters}");
        }
    }

    #[test]
    fn errors_have_no_part_of_the_address() {
        for address in [
            "postgrs://u:secret@h/d",
            "postgres://u:secret@h:port/d",
            "postgres://u:se?secret=1@h/d",
            "postgres://u:secret@h/d?secret",
            "postgres://u:secret@h/d?sslmode=secret",
            "postgres://u:secret@h/d?schema=",
            "postgres://u:%ffsecret@h/d?schema=%ff",
        ] {
            let error = parse(address).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{address}: {error}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn password_comes_from_variable_or_private_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pass");
        fs::write(
            &file,
            "# h:5432:d:u:comment\nh:*:other:u:no\nh:5432:d:u:a\\:b:c\n",
        )
        .unwrap();
        let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let parse = |extra: &str, variable: Option<&str>| {
            let address = format!("postgres://u@h/d?passfile={}{extra}", file.display());
            PostgresAddress::parse(&address, |name| {
                variable.filter(|_| name == "PGPASSWORD").map(str::to_owned)
            })
        };
        set_mode(0o644);
        let refused = parse("", None).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
        set_mode(0o600);
        let password = |variable| {
            parse("", variable)
                .unwrap()
                .config
                .get_password()
                .map(<[u8]>::to_vec)
        };
        assert_eq!(password(None), Some(b"a:b:c".to_vec()));
        assert_eq!(
            password(Some("from variable")),
            Some(b"from variable".to_vec())
        );
    }
}
