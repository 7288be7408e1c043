//! Storage of blocks: a directory, or a bucket of an object store.
//!
//! In a directory, an object and its directory entries are flushed to disk before [`Bucket::put`] returns; object stores guarantee durability
//! themselves.

use std::fs::File;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, UpdateVersion};

use tokio::runtime::{Builder, Runtime};

use crate::batch::Millis;
use crate::error::StoreError;

/// A directory or an object store bucket.
pub(crate) struct Bucket {
    store: Arc<dyn ObjectStore>,
    /// The directory, if it is one.
    root: Option<PathBuf>,
    /// Present until the bucket is dropped.
    runtime: Option<Runtime>,
}

fn failed(path: &str) -> impl FnOnce(object_store::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Bucket { path, source }
}

impl Bucket {
    /// Opens an existing directory.
    pub fn directory(root: &FilePath) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io { path: root.into(), action: "open", source };
        let root = root.canonicalize().map_err(io)?;
        let store = object_store::local::LocalFileSystem::new_with_prefix(&root);
        let store = store.map_err(failed(&root.display().to_string()))?;
        Self::new(Arc::new(store), Some(root))
    }

    /// Opens an S3 bucket, configured by a URL and the environment.
    #[cfg(feature = "s3")]
    pub fn s3(url: &str) -> Result<Self, StoreError> {
        use object_store::aws::AmazonS3Builder;
        use object_store::prefix::PrefixStore;

        // The process may have installed a provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let wrong = || StoreError::Url(url.to_owned());
        let (_, rest) = url.split_once("://").ok_or_else(wrong)?;
        let prefix = rest.split_once('/').map_or("", |(_, prefix)| prefix);
        let store = AmazonS3Builder::from_env().with_url(url).build().map_err(failed(url))?;
        Self::new(Arc::new(PrefixStore::new(store, prefix)), None)
    }

    /// Fails: this build has no object store.
    #[cfg(not(feature = "s3"))]
    pub fn s3(url: &str) -> Result<Self, StoreError> {
        Err(StoreError::Url(url.to_owned()))
    }

    /// A bucket in memory.
    #[cfg(test)]
    pub fn memory(store: Arc<object_store::memory::InMemory>) -> Result<Self, StoreError> {
        Self::new(store, None)
    }

    /// Whether other servers may use it too.
    pub fn is_shared(&self) -> bool {
        self.root.is_none()
    }

    fn new(store: Arc<dyn ObjectStore>, root: Option<PathBuf>) -> Result<Self, StoreError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store-io")
            .enable_all()
            .build()
            .map_err(|source| StoreError::Io { path: "threads".into(), action: "start", source })?;
        Ok(Self { store, root, runtime: Some(runtime) })
    }

    /// Runs a store operation to its end.
    fn wait<T>(&self, work: impl Future<Output = object_store::Result<T>>) -> object_store::Result<T> {
        let closed = || object_store::Error::Generic { store: "bucket", source: "it is closed".into() };
        self.runtime.as_ref().ok_or_else(closed)?.block_on(work)
    }

    /// Writes an object atomically.
    pub fn put(&self, path: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.wait(self.store.put(&Path::from(path), bytes.into())).map_err(failed(path))?;
        let Some(root) = &self.root else { return Ok(()) };
        let file = root.join(path);
        let sync = |path: &FilePath| {
            let synced = File::open(path).and_then(|file| file.sync_all());
            synced.map_err(|source| StoreError::Io { path: path.into(), action: "write", source })
        };
        sync(&file)?;
        file.ancestors().skip(1).take_while(|above| above.starts_with(root)).try_for_each(sync)
    }

    /// Reads an object.
    pub fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        let get = async { self.store.get(&Path::from(path)).await?.bytes().await };
        self.wait(get).map_err(failed(path))
    }

    /// Reads an object with its version. `None` if it does not exist.
    pub fn find(&self, path: &str) -> Result<Option<(Bytes, UpdateVersion)>, StoreError> {
        let find = async {
            let found = self.store.get(&Path::from(path)).await?;
            let version =
                UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
            Ok((found.bytes().await?, version))
        };
        match self.wait(find) {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(path)(error)),
        }
    }

    /// Writes an object unless it has changed since `version`, or has been created if that is `None`. Returns whether it was written.
    pub fn put_if(
        &self,
        path: &str,
        bytes: Bytes,
        version: Option<UpdateVersion>,
    ) -> Result<bool, StoreError> {
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        match self.wait(self.store.put_opts(&Path::from(path), bytes.into(), mode.into())) {
            Ok(_) => Ok(true),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. }
                | object_store::Error::NotFound { .. },
            ) => Ok(false),
            Err(error) => Err(failed(path)(error)),
        }
    }

    /// Paths of all objects below a directory, with their modification times.
    pub fn list(&self, folder: &str) -> Result<Vec<(String, Millis)>, StoreError> {
        Ok(self.objects(folder)?.into_iter().map(|(path, _, written)| (path, written)).collect())
    }

    /// Paths of all objects below a directory, with their sizes in bytes and modification times.
    pub fn objects(&self, folder: &str) -> Result<Vec<(String, u64, Millis)>, StoreError> {
        let list = self.store.list(Some(&Path::from(folder))).map_ok(|object| {
            (object.location.to_string(), object.size, Millis(object.last_modified.timestamp_millis()))
        });
        self.wait(list.try_collect()).map_err(failed(folder))
    }

    /// Names of the subdirectories of a directory.
    pub fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let folder_path = Path::from(folder);
        let prefix = (!folder.is_empty()).then_some(&folder_path);
        let listed = self.wait(self.store.list_with_delimiter(prefix)).map_err(failed(folder))?;
        Ok(listed.common_prefixes.iter().filter_map(|path| path.filename().map(str::to_owned)).collect())
    }

    /// Deletes an object. Succeeds if it does not exist.
    pub fn delete(&self, path: &str) -> Result<(), StoreError> {
        match self.wait(self.store.delete(&Path::from(path))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(path)(error)),
        }
    }

    /// Removes a directory with everything in it, durably.
    pub fn remove_tree(&self, folder: &str) -> Result<(), StoreError> {
        let Some(root) = &self.root else {
            return self.list(folder)?.into_iter().try_for_each(|(path, _)| self.delete(&path));
        };
        let path = root.join(folder);
        let removed = match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            removed => removed.and_then(|()| File::open(path.parent().unwrap_or(root))?.sync_all()),
        };
        removed.map_err(|source| StoreError::Io { path, action: "remove", source })
    }

    /// Removes an empty directory, if the bucket is a directory.
    pub fn remove_folder(&self, folder: &str) {
        if let Some(root) = &self.root {
            // Fails if the directory is not empty, because something was added; that stays.
            let _ = std::fs::remove_dir(root.join(folder));
        }
    }
}

/// The last owner of a store may be an async task, which must not block on threads.
impl Drop for Bucket {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
