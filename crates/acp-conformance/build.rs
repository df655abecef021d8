//! Puts the cases into the program: all files of `conformance/cases`, so that none is forgotten.

use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../conformance/cases");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "case")
        {
            files.push(path);
        }
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        list.push_str(&format!("({name:?}, include_str!({file:?})),\n"));
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("cases.rs"), list)?;
    Ok(())
}
