//! The host functions of `wasi:filesystem`: look up the descriptor and dispatch to
//! [`super::resolved_path`] and [`super::file`], which do the work.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use wasmtime::component::{Resource, ResourceTableError};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, Filesize,
    HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::file::{OpenFile, Position};
use super::listing::Listing;
use super::metadata::{hash, hash_at, metadata, stat, timestamps};
use super::path::{Rejected, VirtualPath, resolve};
use super::resolved_path::{Kind, Opened, Request, ResolvedPath};
use super::streams::{Reader, Writer};
use super::{Fail, Shared, View};

/// A guest's descriptor, as stored in the resource table.
#[derive(Clone)]
enum Descriptor {
    File(Arc<OpenFile>),
    Directory(Directory),
}

impl Descriptor {
    /// The state that all descriptors share, and the bytes of this descriptor's path.
    fn parts(&self) -> (&Arc<Shared>, u64) {
        let (shared, path) = match self {
            Self::File(file) => (&file.shared, &file.path),
            Self::Directory(directory) => (&directory.shared, &directory.path),
        };
        (shared, path.as_str().len() as u64)
    }
}

/// A directory as a path, which holds nothing open.
#[derive(Clone)]
struct Directory {
    path: VirtualPath,
    shared: Arc<Shared>,
}

type Handle = Resource<types::Descriptor>;
type InputStream = Resource<DynInputStream>;
type OutputStream = Resource<DynOutputStream>;
type Entries = Resource<types::DirectoryEntryStream>;

impl Directory {
    /// Resolves a path that the guest gave relative to this directory.
    fn place(&self, text: &str) -> FsResult<ResolvedPath> {
        let resolved = match resolve(&self.path, text) {
            Ok(resolved) => resolved,
            Err(Rejected::Malformed(code)) => return Err(code.into()),
            Err(Rejected::Outside(path)) => return Err(self.refuse(&path)),
        };
        let Some((mount, access)) = self.shared.grant.plan.find(&resolved.path) else {
            return Err(self.refuse(resolved.path.as_str()));
        };
        Ok(ResolvedPath {
            shared: self.shared.clone(),
            mount: mount.clone(),
            access,
            directory: resolved.directory,
            path: resolved.path,
        })
    }

    /// Resolves the path of an entry to be removed or renamed, which can't be the directory itself.
    fn entry(&self, text: &str) -> FsResult<ResolvedPath> {
        let place = self.place(text)?;
        if place.path == self.path {
            return Err(ErrorCode::Invalid.into());
        }
        Ok(place)
    }

    /// Resolves the directory's own path.
    fn own(&self) -> FsResult<ResolvedPath> {
        self.place(".")
    }

    fn refuse(&self, path: &str) -> FsError {
        Fail::Refused(ErrorCode::NotPermitted).raise(path, &self.shared.violations)
    }
}

/// Runs an operation on a resolved path, on a thread that may block.
async fn at<R: Send + 'static>(
    place: ResolvedPath,
    work: impl FnOnce(&ResolvedPath) -> Result<R, Fail> + Send + 'static,
) -> FsResult<R> {
    let (path, shared) = (place.path.clone(), place.shared.clone());
    shared.run(&path, move || work(&place)).await
}

/// Runs an operation on a file, on a thread that may block.
async fn on<R: Send + 'static>(
    file: Arc<OpenFile>,
    work: impl FnOnce(&OpenFile) -> Result<R, Fail> + Send + 'static,
) -> FsResult<R> {
    let (path, shared) = (file.path.clone(), file.shared.clone());
    shared.run(&path, move || work(&file)).await
}

impl Descriptor {
    /// Runs an operation on an open file, or on the path of a directory.
    async fn with<R: Send + 'static>(
        self,
        file: impl FnOnce(&OpenFile) -> Result<R, Fail> + Send + 'static,
        place: impl FnOnce(&ResolvedPath) -> Result<R, Fail> + Send + 'static,
    ) -> FsResult<R> {
        match self {
            Self::File(open) => on(open, file).await,
            Self::Directory(directory) => at(directory.own()?, place).await,
        }
    }

    async fn metadata(self) -> FsResult<Metadata> {
        self.with(|file| Ok(file.metadata()?), metadata).await
    }

    /// Waits until the written data is on the disk.
    async fn synchronise(self, data_alone: bool) -> FsResult<()> {
        let file = move |file: &OpenFile| file.sync(data_alone);
        self.with(file, ResolvedPath::sync_directory).await
    }
}

impl View<'_> {
    fn descriptor(&self, handle: &Handle) -> Result<Descriptor, ResourceTableError> {
        let own = Resource::<Descriptor>::new_borrow(handle.rep());
        self.table.get(&own).cloned()
    }

    fn file(&self, handle: &Handle) -> FsResult<Arc<OpenFile>> {
        match self.descriptor(handle)? {
            Descriptor::File(file) => Ok(file),
            Descriptor::Directory(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    fn directory(&self, handle: &Handle) -> FsResult<Directory> {
        match self.descriptor(handle)? {
            Descriptor::Directory(directory) => Ok(directory),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// Guests can't create links.
    fn refuse_link(&self, handle: &Handle, path: &str) -> FsResult<()> {
        let directory = self.directory(handle)?;
        let place = directory.place(path)?;
        Err(directory.refuse(place.path.as_str()))
    }

    fn push(&mut self, descriptor: Descriptor) -> Result<Handle, ResourceTableError> {
        let (shared, path) = descriptor.parts();
        shared.held.keep(path);
        let own = self.table.push(descriptor)?;
        Ok(Resource::new_own(own.rep()))
    }

    fn writer(&mut self, handle: &Handle, position: Position) -> FsResult<OutputStream> {
        let file = self.file(handle)?;
        let writer = Writer::new(file.clone(), position)
            .map_err(|fail| fail.raise(file.path.as_str(), &file.shared.violations))?;
        let stream: DynOutputStream = Box::new(writer);
        Ok(self.table.push(stream)?)
    }
}

impl preopens::Host for View<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Handle, String)>> {
        let Some(shared) = self.ctx.0.clone() else {
            return Ok(Vec::new());
        };
        let preopens = shared.grant.plan.preopens.iter().map(|path| {
            let handle = self.push(Descriptor::Directory(Directory {
                path: path.clone(),
                shared: shared.clone(),
            }))?;
            Ok((handle, path.as_str().to_owned()))
        });
        preopens.collect()
    }
}

impl types::Host for View<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        let error = self.table.get(&error)?;
        Ok(error.downcast_ref::<ErrorCode>().copied())
    }
}

impl HostDescriptor for View<'_> {
    fn read_via_stream(&mut self, handle: Handle, offset: Filesize) -> FsResult<InputStream> {
        let file = match self.descriptor(&handle)? {
            Descriptor::File(file) => file,
            Descriptor::Directory(_) => return Err(ErrorCode::IsDirectory.into()),
        };
        let reader = Reader::new(file.clone(), offset)
            .map_err(|fail| fail.raise(file.path.as_str(), &file.shared.violations))?;
        let stream: DynInputStream = Box::new(reader);
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(&mut self, handle: Handle, offset: Filesize) -> FsResult<OutputStream> {
        self.writer(&handle, Position::At(offset))
    }

    fn append_via_stream(&mut self, handle: Handle) -> FsResult<OutputStream> {
        self.writer(&handle, Position::End)
    }

    /// Ignored, since read-ahead and dropped caches would slow down other guests.
    async fn advise(
        &mut self,
        handle: Handle,
        _offset: Filesize,
        _length: Filesize,
        _advice: Advice,
    ) -> FsResult<()> {
        self.file(&handle).map(|_| ())
    }

    async fn sync_data(&mut self, handle: Handle) -> FsResult<()> {
        self.descriptor(&handle)?.synchronise(true).await
    }

    async fn get_flags(&mut self, handle: Handle) -> FsResult<DescriptorFlags> {
        Ok(match self.descriptor(&handle)? {
            Descriptor::File(file) => {
                flag(file.read, DescriptorFlags::READ) | flag(file.write, DescriptorFlags::WRITE)
            }
            Descriptor::Directory(Directory { path, shared }) => {
                let writes = shared.grant.plan.writes_somewhere(&path);
                DescriptorFlags::READ | flag(writes, DescriptorFlags::MUTATE_DIRECTORY)
            }
        })
    }

    async fn get_type(&mut self, handle: Handle) -> FsResult<DescriptorType> {
        Ok(match self.descriptor(&handle)? {
            Descriptor::File(_) => DescriptorType::RegularFile,
            Descriptor::Directory(_) => DescriptorType::Directory,
        })
    }

    async fn set_size(&mut self, handle: Handle, size: Filesize) -> FsResult<()> {
        on(self.file(&handle)?, move |file| {
            file.writable()?;
            file.set_size(size)
        })
        .await
    }

    async fn set_times(
        &mut self,
        handle: Handle,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let times = timestamps(&access, &modification)?;
        match self.descriptor(&handle)? {
            Descriptor::File(file) => on(file, move |file| file.set_times(&times)).await,
            Descriptor::Directory(directory) => {
                at(directory.own()?, move |place| place.set_times(&times)).await
            }
        }
    }

    async fn read(
        &mut self,
        handle: Handle,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        on(self.file(&handle)?, move |file| {
            file.readable()?;
            let bytes = file.read_at(length, offset)?;
            let at_end = bytes.is_empty() && length > 0;
            Ok((bytes, at_end))
        })
        .await
    }

    async fn write(
        &mut self,
        handle: Handle,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        on(self.file(&handle)?, move |file| {
            file.writable()?;
            file.write_to(Position::At(offset), &bytes)?;
            Ok(bytes.len() as u64)
        })
        .await
    }

    async fn read_directory(&mut self, handle: Handle) -> FsResult<Entries> {
        let place = self.directory(&handle)?.own()?;
        let listing = at(place, |place| Listing::open(place.clone())).await?;
        let own = self.table.push(listing)?;
        Ok(Resource::new_own(own.rep()))
    }

    async fn sync(&mut self, handle: Handle) -> FsResult<()> {
        self.descriptor(&handle)?.synchronise(false).await
    }

    async fn create_directory_at(&mut self, handle: Handle, path: String) -> FsResult<()> {
        let place = self.directory(&handle)?.place(&path)?;
        at(place, ResolvedPath::create_directory).await
    }

    async fn stat(&mut self, handle: Handle) -> FsResult<DescriptorStat> {
        Ok(stat(&self.descriptor(&handle)?.metadata().await?))
    }

    async fn stat_at(
        &mut self,
        handle: Handle,
        _follow: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let place = self.directory(&handle)?.place(&path)?;
        Ok(stat(&at(place, metadata).await?))
    }

    async fn set_times_at(
        &mut self,
        handle: Handle,
        _follow: PathFlags,
        path: String,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let times = timestamps(&access, &modification)?;
        let place = self.directory(&handle)?.place(&path)?;
        at(place, move |place| place.set_times(&times)).await
    }

    async fn link_at(
        &mut self,
        _old: Handle,
        _follow: PathFlags,
        _old_path: String,
        new: Handle,
        new_path: String,
    ) -> FsResult<()> {
        self.refuse_link(&new, &new_path)
    }

    async fn open_at(
        &mut self,
        handle: Handle,
        _follow: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Handle> {
        let synchronous = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(synchronous) {
            return Err(ErrorCode::Unsupported.into());
        }
        let request = Request {
            read: flags.contains(DescriptorFlags::READ),
            write: flags.contains(DescriptorFlags::WRITE),
            create: open.contains(OpenFlags::CREATE),
            exclusive: open.contains(OpenFlags::EXCLUSIVE),
            truncate: open.contains(OpenFlags::TRUNCATE),
            directory: open.contains(OpenFlags::DIRECTORY),
        };
        if request.directory && (request.create || request.exclusive || request.truncate) {
            return Err(ErrorCode::Invalid.into());
        }
        let place = self.directory(&handle)?.place(&path)?;
        let (shared, path) = (place.shared.clone(), place.path.clone());
        let opened = at(place, move |place| place.open(&request)).await?;
        Ok(self.push(match opened {
            Opened::File(file) => Descriptor::File(Arc::new(file)),
            Opened::Directory => Descriptor::Directory(Directory { path, shared }),
        })?)
    }

    async fn readlink_at(&mut self, handle: Handle, path: String) -> FsResult<String> {
        let place = self.directory(&handle)?.place(&path)?;
        at(place, ResolvedPath::read_link).await?;
        Err(ErrorCode::Invalid.into())
    }

    async fn remove_directory_at(&mut self, handle: Handle, path: String) -> FsResult<()> {
        let place = self.directory(&handle)?.entry(&path)?;
        at(place, |place| place.remove(Kind::Directory)).await
    }

    async fn rename_at(
        &mut self,
        old: Handle,
        old_path: String,
        new: Handle,
        new_path: String,
    ) -> FsResult<()> {
        let from = self.directory(&old)?.entry(&old_path)?;
        let to = self.directory(&new)?.entry(&new_path)?.for_creation()?;
        at(from, move |from| from.rename(&to)).await
    }

    async fn symlink_at(&mut self, handle: Handle, _target: String, path: String) -> FsResult<()> {
        self.refuse_link(&handle, &path)
    }

    async fn unlink_file_at(&mut self, handle: Handle, path: String) -> FsResult<()> {
        let place = self.directory(&handle)?.entry(&path)?;
        at(place, |place| place.remove(Kind::File)).await
    }

    async fn is_same_object(&mut self, a: Handle, b: Handle) -> wasmtime::Result<bool> {
        let (a, b) = (self.descriptor(&a)?, self.descriptor(&b)?);
        let identity = async |descriptor: Descriptor| {
            let metadata = descriptor.metadata().await?;
            FsResult::Ok((metadata.dev(), metadata.ino()))
        };
        match (identity(a).await, identity(b).await) {
            (Ok(a), Ok(b)) => Ok(a == b),
            // An object without metadata, such as a removed directory, equals no other. A trap
            // stays a trap.
            (Err(error), _) | (_, Err(error)) => error.downcast().map(|_| false),
        }
    }

    async fn metadata_hash(&mut self, handle: Handle) -> FsResult<MetadataHashValue> {
        let file = |file: &OpenFile| hash(&file.metadata()?, &file.shared);
        self.descriptor(&handle)?.with(file, hash_at).await
    }

    async fn metadata_hash_at(
        &mut self,
        handle: Handle,
        _follow: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let place = self.directory(&handle)?.place(&path)?;
        at(place, hash_at).await
    }

    fn drop(&mut self, handle: Handle) -> wasmtime::Result<()> {
        let own = Resource::<Descriptor>::new_own(handle.rep());
        let descriptor = self.table.delete(own)?;
        let (shared, path) = descriptor.parts();
        shared.held.give_back(path);
        Ok(())
    }
}

fn flag(set: bool, flag: DescriptorFlags) -> DescriptorFlags {
    if set { flag } else { DescriptorFlags::empty() }
}
