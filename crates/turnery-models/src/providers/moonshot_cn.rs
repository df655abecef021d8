//! Moonshot AI in China.

use super::{KnownProvider, moonshot};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "moonshot-cn",
    base_url: "https://api.moonshot.cn/v1",
    url_variable: "MOONSHOT_CN_BASE_URL",
    ..moonshot::PROVIDER
};
