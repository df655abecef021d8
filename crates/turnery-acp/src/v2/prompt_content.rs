//! Converts the content blocks of a v2 prompt. Types that were not advertised are rejected (V2-18).

crate::server::prompt_content::define_prompt_parser!(v2);
