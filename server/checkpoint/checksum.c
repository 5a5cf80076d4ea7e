#include "server/checkpoint/checksum.h"

#include "common/env/read_only_disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES      16u
#define PART_BYTES ((size_t)1 << 20)

static_assert(sizeof(crypto_generichash_blake2b_state) <= sizeof((struct dp_checksum *)0)->state,
              "the state of libsodium's BLAKE2b fits");

static crypto_generichash_blake2b_state *state_of(struct dp_checksum *sum)
{
    return (crypto_generichash_blake2b_state *)(void *)sum->state;
}

void dp_checksum_begin(struct dp_checksum *sum)
{
    DP_ASSERT(crypto_generichash_blake2b_init(state_of(sum), NULL, 0, BYTES) == 0);
}

void dp_checksum_put(struct dp_checksum *sum, const void *bytes, size_t size)
{
    DP_ASSERT(crypto_generichash_blake2b_update(state_of(sum), bytes, size) == 0);
}

void dp_checksum_end(struct dp_checksum *sum, char text[DP_CHECKSUM_TEXT])
{
    unsigned char hash[BYTES];
    DP_ASSERT(crypto_generichash_blake2b_final(state_of(sum), hash, sizeof hash) == 0);
    for (size_t i = 0; i < BYTES; i++) {
        text[2 * i] = "0123456789abcdef"[hash[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
    }
    text[2 * (size_t)BYTES] = '\0';
}

static enum dp_status read_all(int fd, struct dp_pace *pace, struct dp_checksum *sum, uint64_t *bytes,
                               struct dp_error *err)
{
    char *part = malloc(PART_BYTES);
    enum dp_status st = part ? DP_OK : dp_fail(err, DP_NOMEM, "no memory to read it");
    *bytes = 0;
    for (ssize_t got = 1; st == DP_OK && got != 0;) {
        got = read(fd, part, PART_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            st = dp_fail(err, DP_IO, "%s", strerror(errno));
            break;
        }
        dp_checksum_put(sum, part, (size_t)got);
        *bytes += (uint64_t)got;
        st = dp_pace_step(pace, (uint64_t)got, err);
    }
    free(part);
    return st;
}

enum dp_status dp_checksum_file(const char *path, struct dp_pace *pace, uint64_t *bytes,
                                char text[DP_CHECKSUM_TEXT], struct dp_error *err)
{
    struct dp_checksum sum;
    int fd;
    enum dp_status st = dp_read_only_disk_file(AT_FDCWD, path, &fd, err);
    if (st == DP_OK) {
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        dp_checksum_begin(&sum);
        st = read_all(fd, pace, &sum, bytes, err);
        (void)close(fd);
    }
    if (st == DP_OK)
        dp_checksum_end(&sum, text);
    return st == DP_OK || st == DP_STOPPING ? st : dp_wrap(err, st, "read %s", path);
}
