#include "server/store/figures.h"

#include <stdlib.h>
#include <sys/statvfs.h>

/* 0 where RocksDB gives none. */
static uint64_t number(const struct dp_rocks_db *db, const char *property)
{
    uint64_t value = 0;
    if (rocksdb_property_int_cf(db->db, db->families[DP_ROCKS_ROWS], property, &value) != 0)
        return 0;
    return value;
}

/* This one is no number to RocksDB. */
static uint64_t l0_files(const struct dp_rocks_db *db)
{
    char *text =
        rocksdb_property_value_cf(db->db, db->families[DP_ROCKS_ROWS], "rocksdb.num-files-at-level0");
    uint64_t value = text ? strtoull(text, NULL, 10) : 0;
    rocksdb_free(text);
    return value;
}

void dp_figures_take(const struct dp_rocks_db *db, struct dp_figures *figures)
{
    atomic_store(&figures->l0_files, l0_files(db));
    atomic_store(&figures->compaction_debt_bytes, number(db, "rocksdb.estimate-pending-compaction-bytes"));
    atomic_store(&figures->file_bytes, number(db, "rocksdb.total-sst-files-size"));
    atomic_store(&figures->block_cache_bytes, number(db, "rocksdb.block-cache-usage"));
    atomic_store(&figures->reader_bytes, number(db, "rocksdb.estimate-table-readers-mem"));
    struct statvfs disk;
    if (statvfs(db->directory, &disk) == 0)
        atomic_store(&figures->disk_free_bytes, (uint64_t)disk.f_bavail * disk.f_frsize);
    atomic_store(&figures->rows_about, number(db, "rocksdb.estimate-num-keys"));
}

void dp_figures_get(struct dp_figures *figures, struct dp_store_figures *out)
{
    *out = (struct dp_store_figures){.l0_files = atomic_load(&figures->l0_files),
                                     .compaction_debt_bytes = atomic_load(&figures->compaction_debt_bytes),
                                     .file_bytes = atomic_load(&figures->file_bytes),
                                     .block_cache_bytes = atomic_load(&figures->block_cache_bytes),
                                     .reader_bytes = atomic_load(&figures->reader_bytes),
                                     .rows_about = atomic_load(&figures->rows_about),
                                     .disk_free_bytes = atomic_load(&figures->disk_free_bytes)};
}
