//! Converts the content blocks of a v1 prompt (PROMPT-1, PROMPT-2).

crate::server::prompt_content::define_prompt_parser!(v1);
