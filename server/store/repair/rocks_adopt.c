#include "server/store/repair/rocks_adopt.h"

#include "server/store/marks.h"

#include <stdio.h>
#include <unistd.h>

enum dp_status dp_rocks_store_adopt(const struct dp_rocks_adoption *adoption, struct dp_error *err)
{
    const char *directory = adoption->store.directory;
    struct dp_rocks_db db = {0};
    char current[1400];
    if (snprintf(current, sizeof current, "%s/CURRENT", directory) >= (int)sizeof current)
        return dp_fail(err, DP_ARGUMENT, "the path of store %.100s... is too long", directory);
    if (access(current, F_OK) != 0) /* RocksDB would make a new database */
        return dp_fail(err, DP_CORRUPT, "store %s has no file CURRENT", directory);
    enum dp_status st = dp_rocks_db_open(directory, &db, err);
    if (st == DP_OK)
        st = dp_marks_adopt(&db, adoption, err);
    dp_rocks_db_close(&db);
    return st;
}
