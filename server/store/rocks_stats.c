#include "server/store/rocks_stats.h"

#include <stdlib.h>
#include <sys/statvfs.h>

/* 0 if RocksDB does not know it. */
static uint64_t number(const struct dp_rocks_db *db, const char *property)
{
    uint64_t value = 0;
    if (rocksdb_property_int_cf(db->db, db->families[DP_ROCKS_ROWS], property, &value) != 0)
        return 0;
    return value;
}

/* RocksDB gives this property as text only. */
static uint64_t l0_files(const struct dp_rocks_db *db)
{
    char *text =
        rocksdb_property_value_cf(db->db, db->families[DP_ROCKS_ROWS], "rocksdb.num-files-at-level0");
    uint64_t value = text ? strtoull(text, NULL, 10) : 0;
    rocksdb_free(text);
    return value;
}

void dp_rocks_stats_take(const struct dp_rocks_db *db, struct dp_rocks_stats *stats)
{
    atomic_store(&stats->l0_files, l0_files(db));
    atomic_store(&stats->compaction_debt_bytes, number(db, "rocksdb.estimate-pending-compaction-bytes"));
    atomic_store(&stats->file_bytes, number(db, "rocksdb.total-sst-files-size"));
    atomic_store(&stats->block_cache_bytes, number(db, "rocksdb.block-cache-usage"));
    atomic_store(&stats->reader_bytes, number(db, "rocksdb.estimate-table-readers-mem"));
    struct statvfs disk;
    if (statvfs(db->directory, &disk) == 0)
        atomic_store(&stats->disk_free_bytes, (uint64_t)disk.f_bavail * disk.f_frsize);
    atomic_store(&stats->rows_about, number(db, "rocksdb.estimate-num-keys"));
}

void dp_rocks_stats_get(struct dp_rocks_stats *stats, struct dp_store_stats *out)
{
    *out = (struct dp_store_stats){.l0_files = atomic_load(&stats->l0_files),
                                   .compaction_debt_bytes = atomic_load(&stats->compaction_debt_bytes),
                                   .file_bytes = atomic_load(&stats->file_bytes),
                                   .block_cache_bytes = atomic_load(&stats->block_cache_bytes),
                                   .reader_bytes = atomic_load(&stats->reader_bytes),
                                   .rows_about = atomic_load(&stats->rows_about),
                                   .disk_free_bytes = atomic_load(&stats->disk_free_bytes)};
}
