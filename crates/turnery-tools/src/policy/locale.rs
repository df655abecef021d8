//! Checks that bash reads non-ASCII lines as the policy does.

use std::{env, sync::LazyLock};

/// Returns true if bash, started with this process's environment, reads lines as UTF-8 or byte by byte. In
/// some other encodings the second byte of a character may be a backslash or a quote.
pub(super) fn is_encoding_safe() -> bool {
    static IS_SAFE: LazyLock<bool> = LazyLock::new(|| {
        let variables = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| {
            let value = env::var_os(name).unwrap_or_default();
            value.to_string_lossy().into_owned()
        });
        are_encodings_safe(&variables)
    });
    *IS_SAFE
}

/// Returns true if bash reads lines as UTF-8 or byte by byte in every one of these locales; all count,
/// because a line may clear the first variable.
fn are_encodings_safe(variables: &[String]) -> bool {
    let is_utf8 = |encoding: &str| matches!(encoding.to_lowercase().as_str(), "utf-8" | "utf8");
    variables.iter().all(|locale| {
        let encoding = locale.split('@').next().and_then(|it| it.split_once('.'));
        matches!(locale.as_str(), "" | "C" | "POSIX")
            || encoding.is_some_and(|(_, encoding)| is_utf8(encoding))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_encodings_are_accepted() {
        let cases = [
            (["", "", ""], true),
            (["", "", "C"], true),
            (["POSIX", "", ""], true),
            (["", "", "de_DE.UTF-8@euro"], true),
            (["C.utf8", "", "C.UTF-8"], true),
            (["C.utf8", "zh_CN.GBK", ""], false),
            (["C", "", "zh_CN.GBK"], false),
            (["", "zh_CN.GBK", "C.UTF-8"], false),
            (["zh_TW", "", ""], false),
            (["ja_JP.SJIS", "C.UTF-8", "C.UTF-8"], false),
            (["UTF-8", "", ""], false),
        ];
        for (variables, expected) in cases {
            let owned = variables.map(str::to_owned);
            assert_eq!(are_encodings_safe(&owned), expected, "{variables:?}");
        }
    }
}
