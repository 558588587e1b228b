"""CEL expressions about the volume of a run, for the rules of tools."""

NO_VOLUME = "!has(self.storage) || !has(self.storage.volume)"

_ON_FILES = (
    "self.storage.volume.sharing == 'Shared' || has(self.storage.rook) && "
    "(has(self.storage.rook.fileSystem) || has(self.storage.rook.existingFileSystem))"
)

IS_BLOCK = f"(has(self.storage.volume.mode) ? self.storage.volume.mode == 'Block' : !({_ON_FILES}))"
"""Of a run that has a volume."""
