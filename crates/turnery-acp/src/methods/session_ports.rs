//! Connects a session to its client.

use crate::{
    client::{
        editor_files::EditorFiles, key_page::KeyPageOpener, peer::Peer, terminals::ClientTerminals,
    },
    server::{
        acp_version::AcpVersion, encoder::SharedEncoder, method_call::MethodCall,
        outbox::WireOutbox,
    },
    v1::permission::PermissionClientV1,
    v2::permission::PermissionClientV2,
};
use std::sync::Arc;
use turnery_agent::{
    Client, ClientPorts,
    view::{SessionCost, SessionView},
};
use turnery_engine::SessionId;
use turnery_tools::{LocalFiles, Terminals};

/// Returns the ports of a session. Only methods that the client declared are used (FS-1, TERM-1).
pub(super) fn session_ports(
    call: &MethodCall,
    id: &SessionId,
    replay: bool,
    session_cost: SessionCost,
    encoder: SharedEncoder,
) -> ClientPorts {
    let can = call.connection.client_features();
    let peer = &call.connection.peer;
    let gate = (!replay).then(|| call.scope.responded.clone());
    let barrier = call.connection.barrier.clone();
    let version = call.connection.version();
    let outbox = WireOutbox::new(
        id,
        peer.out().clone(),
        barrier,
        SessionView::new(session_cost),
        encoder,
        gate,
    );
    ClientPorts {
        client: permission_client(version, peer, can.forms, call.connection.key_page_opener()),
        outbox: Box::new(outbox),
        files: if can.read_files || can.write_files {
            let (reads, writes) = (can.read_files, can.write_files);
            Arc::new(EditorFiles::new(
                Arc::clone(peer),
                id.clone(),
                reads,
                writes,
            ))
        } else {
            Arc::new(LocalFiles)
        },
        terminals: can.terminals.then(|| -> Arc<dyn Terminals> {
            let peer = Arc::clone(peer);
            Arc::new(ClientTerminals::new(peer, id.clone(), can.quirks))
        }),
    }
}

/// Returns the client port that asks for permissions. `forms` enables questions of the model, `pages` missing
/// keys; v2 supports neither.
fn permission_client(
    version: AcpVersion,
    peer: &Arc<Peer>,
    forms: bool,
    pages: Option<KeyPageOpener>,
) -> Arc<dyn Client> {
    let peer = Arc::clone(peer);
    match version {
        AcpVersion::V1 => Arc::new(PermissionClientV1 {
            peer,
            forms,
            key_page_opener: pages,
        }),
        AcpVersion::V2 => Arc::new(PermissionClientV2(peer)),
    }
}
