/* Where things lie in the files of a journal_world. */
#ifndef DP_TESTS_UNIT_SERVER_JOURNAL_JOURNAL_PLACES_H
#define DP_TESTS_UNIT_SERVER_JOURNAL_JOURNAL_PLACES_H

#include "server/journal/crc32c.h"
#include "server/journal/journal_record.h"
#include "tests/lib/test.h"
#include "tests/unit/server/journal/journal_world.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct world world;

static void opened(enum dp_durability durability, uint64_t seed)
{
    world_init(&world, seed, durability);
    world_recover(&world, 0);
}

static void name_of(char name[32], uint64_t number)
{
    (void)snprintf(name, 32, "journal-%016" PRIx64, number);
}

/* Offset of the record with this lsn and incarnation in a file; 0: not there. */
static uint64_t offset_of(uint64_t number, uint64_t lsn, uint64_t incarnation)
{
    char name[32];
    uint64_t bytes;
    struct dp_journal_header header;
    name_of(name, number);
    const uint8_t *data = dp_sim_disk_bytes(world.sim, name, &bytes);
    for (uint64_t at = DP_JOURNAL_PAGE; data && at + DP_JOURNAL_HEADER <= bytes; at += DP_JOURNAL_HEADER)
        if (dp_journal_header_take(data + at, &header) && header.kind == DP_JOURNAL_RECORD &&
            header.lsn == lsn && header.incarnation == incarnation)
            return at;
    return 0;
}

#endif
