//! Alibaba Cloud Model Studio in China.

use super::{KnownProvider, qwen};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "qwen-cn",
    base_url: "https://dashscope.aliyuncs.com/compatible-mode/v1",
    url_variable: "DASHSCOPE_CN_BASE_URL",
    ..qwen::PROVIDER
};
