//! Encodes updates of a session that follow from no event: changed options and warnings.

use crate::{
    client::features::OptionalUpdates, server::acp_version::AcpVersion, transport::update_writer,
    v1::config_options, v2,
};
use agent_client_protocol_schema::v2::{ConfigOptionUpdate, NoticeSeverity, SessionUpdate};
use turnery_agent::Session;

/// Encodes a warning about the session.
pub(crate) fn encode_warning(
    version: AcpVersion,
    id: &str,
    takes: OptionalUpdates,
    title: &str,
    text: &str,
) -> Vec<u8> {
    match version {
        AcpVersion::V1 => update_writer::update_line(id, &takes.encode_warning(title, text)),
        AcpVersion::V2 => update_writer::update_line(
            id,
            &v2::shared::encode_notice(NoticeSeverity::Warning, title, text),
        ),
    }
}

/// Encodes a mode change that the client did not request, in every form the version has.
pub(crate) fn encode_mode_change(version: AcpVersion, session: &Session) -> Vec<u8> {
    match version {
        AcpVersion::V1 => {
            let id = session.id().as_str();
            let mut lines =
                update_writer::update_line(id, &config_options::encode_mode_update(session));
            lines.extend(update_writer::update_line(
                id,
                &config_options::encode_config_update(session),
            ));
            lines
        }
        AcpVersion::V2 => encode_v2_options(session),
    }
}

/// Encodes a model change that the client did not request.
pub(crate) fn encode_model_change(version: AcpVersion, session: &Session) -> Vec<u8> {
    match version {
        AcpVersion::V1 => update_writer::update_line(
            session.id().as_str(),
            &config_options::encode_config_update(session),
        ),
        AcpVersion::V2 => encode_v2_options(session),
    }
}

/// Encodes all options, which include the mode.
fn encode_v2_options(session: &Session) -> Vec<u8> {
    let options = v2::shared::encode_config_options(session);
    let update = SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options));
    update_writer::update_line(session.id().as_str(), &update)
}
