/* Hard link: one way to ask for a hard link, for this room and for RocksDB.
 * Why       RocksDB 7.8 copies a file where link() fails with EOPNOTSUPP or EXDEV, but fails its ingest or
 *           checkpoint for the other errors of file systems without hard links: EPERM (FAT, exFAT), ENOSYS
 *           (FUSE), EMLINK (too many links). Its C API has no setting for this, and does not accept a file
 *           system of our own. So hard_link.c defines link(), in front of libc's: every program that
 *           contains this room uses that one, the shared library RocksDB included.
 * Promise   Where a copy would do, link() fails with EOPNOTSUPP. The first time, that is logged, except
 *           between two file systems.
 * Thread    Any. */
#ifndef DP_STORE_HARD_LINK_H
#define DP_STORE_HARD_LINK_H

/* No effect but that the program contains this file: the linker leaves out an archive's member without a caller. */
void dp_hard_link_use(void);

#endif
