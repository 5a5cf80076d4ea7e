#include "server/store/rocks_record.h"

#include "common/base/bytes.h"
#include "common/env/read_only_disk.h"
#include "server/journal/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum dp_status dp_rocks_bytes_read(const char *path, struct dp_rocks_bytes *log, struct dp_error *err)
{
    struct stat found;
    int fd;
    *log = (struct dp_rocks_bytes){0};
    enum dp_status st = dp_read_only_disk_file(AT_FDCWD, path, &fd, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "store: cannot read %s", path);
    if (fstat(fd, &found) != 0)
        st = dp_fail(err, DP_IO, "store: cannot read %s: %s", path, strerror(errno));
    size_t size = st == DP_OK ? (size_t)found.st_size : 0;
    log->bytes = st == DP_OK ? malloc(size + 1) : NULL;
    if (st == DP_OK && !log->bytes)
        st = dp_fail(err, DP_NOMEM, "store: no memory to read %s (%zu bytes)", path, size);
    while (st == DP_OK && log->size < size) {
        ssize_t n = pread(fd, log->bytes + log->size, size - log->size, (off_t)log->size);
        if (n > 0)
            log->size += (size_t)n;
        else if (n == 0 || errno != EINTR)
            st = dp_fail(err, DP_IO, "store: cannot read %s: %s", path,
                         n < 0 ? strerror(errno) : "it ends early");
    }
    (void)close(fd);
    if (st != DP_OK)
        dp_rocks_bytes_clear(log);
    return st;
}

void dp_rocks_bytes_clear(struct dp_rocks_bytes *log)
{
    free(log->bytes);
    *log = (struct dp_rocks_bytes){0};
}

uint32_t dp_rocks_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

bool dp_rocks_part_fits(const uint8_t *part, uint8_t type, size_t payload)
{
    uint32_t crc = dp_crc32c(dp_crc32c(0, &type, 1), part + DP_ROCKS_HEADER, payload);
    return dp_rocks_masked(crc) == dp_load_u32le(part);
}

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
    size_t payload = dp_rocks_part_payload(p);
    return DP_ROCKS_HEADER + payload <= room && dp_rocks_part_fits(p, p[6], payload)
               ? DP_ROCKS_HEADER + payload
               : 0;
}
