//! Opens files in directories where anybody may create one, such as `/tmp`: only those of trusted owners.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::open::OpenError;

/// Opens the regular file at `path` if it belongs to root or to `owner`. Links are not followed, and a pipe or a device is neither waited for
/// nor touched.
///
/// # Errors
/// If there is no such file, it has another owner, or it is not a regular file.
pub fn open_owned(path: &Path, owner: u32) -> Result<File, OpenError> {
    let check = |meta: std::fs::Metadata| match meta.uid() {
        _ if !meta.is_file() => Err(OpenError::NotRegular),
        uid if uid != 0 && uid != owner => Err(OpenError::NotOwned { uid }),
        _ => Ok(()),
    };
    // Checked before, because opening a device can have side effects; and after, because it may have been replaced.
    check(path.symlink_metadata()?)?;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_of_those_who_are_believed_are_opened() {
        let folder = std::env::temp_dir().join(format!("plumb-owned-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.join(name));
        fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        let own = file.metadata().unwrap().uid();
        assert!(open_owned(&file, own).is_ok());
        assert_eq!(open_owned(&link, own).unwrap_err(), OpenError::NotRegular);
        assert_eq!(open_owned(&folder, own).unwrap_err(), OpenError::NotRegular);
        assert_eq!(open_owned(&folder.join("none"), own).unwrap_err(), OpenError::NotFound);
        if made.is_ok_and(|status| status.success()) {
            assert_eq!(open_owned(&pipe, own).unwrap_err(), OpenError::NotRegular);
        }
        // Root may give files away; other users can only test with another owner's name.
        match std::os::unix::fs::chown(&file, Some(54_321), None) {
            Ok(()) => {
                assert_eq!(open_owned(&file, own).unwrap_err(), OpenError::NotOwned { uid: 54_321 });
                assert!(open_owned(&file, 54_321).is_ok());
            }
            Err(_) => assert_eq!(open_owned(&file, own + 1).unwrap_err(), OpenError::NotOwned { uid: own }),
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
