#include "server/store/repair/rocks_history.h"

#include "server/store/marks.h"

#include <stdio.h>
#include <unistd.h>

enum dp_status dp_rocks_store_set_history(const char *directory, uint64_t generation, uint64_t history,
                                          struct dp_error *err)
{
    char current[DP_ROCKS_PLACE_BYTES];
    struct dp_rocks_db db = {0};
    DP_ASSERT(generation > 0);
    (void)snprintf(current, sizeof current, "%s/CURRENT", directory);
    if (access(current, F_OK) != 0) /* RocksDB would make a new database */
        return dp_fail(err, DP_NOT_FOUND, "there is no store in %s", directory);
    enum dp_status st = dp_rocks_db_open(directory, &db, err);
    if (st == DP_OK)
        st = dp_marks_set_history(&db, generation, history, err);
    dp_rocks_db_close(&db);
    return st;
}
