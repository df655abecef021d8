//! Encodes mode, model and thinking level of a session as `modes` and `configOptions`, always in step
//! (MODE-4).

use crate::{v1::shared::encode_config_options, view::session_options::mode_name};
use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionMode, SessionModeState, SessionUpdate,
};
use turnery_agent::{Session, SessionOptions};
use turnery_tools::Mode;

/// Adds modes, options and `_meta` of a session to the response that opens it.
macro_rules! with_options {
    ($response:expr, $session:expr) => {{
        let (session, options) = ($session, $session.options());
        $response
            .modes(crate::v1::config_options::encode_modes(&options))
            .config_options(crate::v1::shared::encode_config_options(session))
            .meta(crate::view::session_options::session_meta(&options))
    }};
}

pub(crate) use with_options;

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
    SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(encode_config_options(session)))
}
