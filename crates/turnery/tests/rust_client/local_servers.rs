//! Keeps the servers of models that happen to run on the testing machine out of the tests.

/// Variables with the addresses at which turnery looks for servers on this machine.
pub(crate) const LOCAL_SERVERS: [&str; 4] = [
    "LLAMACPP_BASE_URL",
    "LMSTUDIO_BASE_URL",
    "OLLAMA_HOST",
    "VLLM_BASE_URL",
];
/// An address at which nobody answers.
pub(crate) const NOBODY: &str = "http://127.0.0.1:1/v1";
