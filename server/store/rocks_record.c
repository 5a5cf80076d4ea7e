#include "server/store/rocks_record.h"

#include "common/base/bytes.h"
#include "server/store/crc32c.h"

enum dp_rocks_part dp_rocks_part_type(const struct dp_rocks_bytes *log, size_t at)
{
    uint8_t type = log->bytes[at + 6];
    return type <= DP_ROCKS_LAST ? (enum dp_rocks_part)type : DP_ROCKS_NONE;
}

size_t dp_rocks_part_at(const struct dp_rocks_bytes *log, size_t at)
{
    const uint8_t *p = log->bytes + at;
    size_t room = DP_ROCKS_BLOCK - at % DP_ROCKS_BLOCK;
    room = room < log->size - at ? room : log->size - at;
    if (room < DP_ROCKS_HEADER || dp_rocks_part_type(log, at) == DP_ROCKS_NONE)
        return 0;
    size_t data = (size_t)p[4] | (size_t)p[5] << 8;
    if (DP_ROCKS_HEADER + data > room)
        return 0;
    uint32_t sum = dp_crc32c(0, p + 6, 1 + data);
    return dp_load_u32le(p) == (sum >> 15 | sum << 17) + 0xa282ead8u ? DP_ROCKS_HEADER + data : 0;
}
