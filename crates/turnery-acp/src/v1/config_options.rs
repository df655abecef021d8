//! Encodes mode, model and thinking level of a session as `modes` and `configOptions`, always in step
//! (MODE-4).

use crate::{v1::shared::encode_config_options, view::session_options::mode_name};
use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionMode, SessionModeState, SessionUpdate,
};
use turnery_agent::{Session, SessionOptions};
use turnery_tools::Mode;

/// Encodes the session's `modes`.
pub(crate) fn encode_modes(options: &SessionOptions) -> SessionModeState {
    let all = Mode::ALL
        .into_iter()
        .map(|mode| {
            SessionMode::new(mode.as_str(), mode_name(mode))
                .description(mode.description().to_owned())
        })
        .collect();
    SessionModeState::new(options.mode.as_str(), all)
}

/// Encodes the current mode as a `current_mode_update`.
pub(crate) fn encode_mode_update(session: &Session) -> SessionUpdate {
    SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(session.options().mode.as_str()))
}

/// Encodes all options as a `config_option_update`.
pub(crate) fn encode_config_update(session: &Session) -> SessionUpdate {
    SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(encode_config_options(
        &session.options(),
    )))
}
