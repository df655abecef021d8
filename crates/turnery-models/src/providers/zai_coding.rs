//! The coding plan of Z.ai, which has its own address.

use super::{KnownProvider, zai};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "zai-coding",
    base_url: "https://api.z.ai/api/coding/paas/v4",
    url_variable: "ZAI_CODING_BASE_URL",
    ..zai::PROVIDER
};
