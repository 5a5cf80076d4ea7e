#include "server/journal/journal_segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "journal-"

void dp_journal_segment_name(char to[DP_JOURNAL_NAME_BYTES], uint64_t number)
{
    (void)snprintf(to, DP_JOURNAL_NAME_BYTES, PREFIX "%016" PRIx64, number);
}

bool dp_journal_segment_number(const char *name, uint64_t *number)
{
    if (strlen(name) != strlen(PREFIX) + 16 || strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return false;
    *number = 0;
    for (const char *at = name + strlen(PREFIX); *at; at++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *at);
        if (!digit)
            return false;
        *number = *number << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

void dp_journal_segment_close(const struct dp_disk *disk, struct dp_journal_segment *segment)
{
    if (segment->file)
        disk->close(disk->self, segment->file);
    segment->file = NULL;
}

static enum dp_status create(const struct dp_disk *disk, const char *name, struct dp_journal_segment *segment,
                             struct dp_error *err)
{
    enum dp_status st = disk->open(disk->self, name, true, &segment->file, err);
    if (st != DP_OK)
        return st;
    st = disk->reserve(disk->self, segment->file, segment->bytes, err);
    if (st == DP_OK)
        st = disk->sync(disk->self, segment->file, err);
    if (st != DP_OK) { /* frees the reserved space */
        dp_journal_segment_close(disk, segment);
        (void)disk->remove(disk->self, name, NULL);
    }
    return st;
}

enum dp_status dp_journal_segment_make(const struct dp_disk *disk, struct dp_journal_segment *old,
                                       uint64_t number, uint64_t bytes, struct dp_journal_segment *out,
                                       struct dp_error *err)
{
    enum dp_status st;
    char name[DP_JOURNAL_NAME_BYTES], from[DP_JOURNAL_NAME_BYTES];
    dp_journal_segment_name(name, number);
    *out = (struct dp_journal_segment){.number = number, .bytes = bytes};
    if (old->file) {
        DP_ASSERT(old->bytes == bytes);
        dp_journal_segment_name(from, old->number);
        st = disk->rename(disk->self, from, name, err);
        out->file = old->file;
        old->file = NULL;
    } else {
        st = create(disk, name, out, err);
    }
    /* The name first, on purpose: after a crash the file may still have its old number, and a write into it
     * would damage a segment that may still be needed. */
    if (st == DP_OK)
        st = disk->sync_directory(disk->self, err);
    if (st != DP_OK) {
        dp_journal_segment_close(disk, out);
        (void)dp_wrap(err, st, "journal: cannot make %s", name);
    }
    return st;
}
