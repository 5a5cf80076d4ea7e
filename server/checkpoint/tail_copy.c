/* A tail in directories, with the checksums of its files. */
#include "common/env/read_only_disk.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/tail.h"
#include "server/store/store_id.h"

struct tail_copy {
    const struct dp_tail_options *o;
    struct dp_manifest_tail *out;
};

static enum dp_status add_file(void *context, const char *name, struct dp_error *err)
{
    const struct tail_copy *c = context;
    char path[DP_COPY_DIRECTORY_BYTES + 200], sum[DP_CHECKSUM_TEXT];
    uint64_t bytes;
    if (snprintf(path, sizeof path, "%s/%s", c->o->to, name) >= (int)sizeof path)
        return dp_fail(err, DP_ARGUMENT, "the path %.200s... is too long", c->o->to);
    enum dp_status st = dp_checksum_file(path, c->o->pace, &bytes, sum, err);
    return st == DP_OK ? dp_manifest_files_add(&c->out->files, name, bytes, sum, err) : st;
}

enum dp_status dp_tail_copy(const struct dp_tail_options *options, struct dp_manifest_tail *out,
                            struct dp_error *err)
{
    struct dp_disk from = {0}, to = {0};
    struct tail_copy copy = {options, out};
    struct dp_tail_journal journal = {.from = &from,
                                      .to = &to,
                                      .job = options->job,
                                      .segment_bytes = options->segment_bytes,
                                      .pace = options->pace,
                                      .file = add_file,
                                      .context = &copy};
    *out = (struct dp_manifest_tail){0};
    dp_store_id_draw(&journal.secret);
    enum dp_status st = dp_read_only_disk_open(options->from, &from, err);
    if (st != DP_OK)
        return st;
    st = dp_disk_open(options->to, &to, err);
    if (st == DP_OK) {
        st = dp_tail_write(&journal, out, err);
        dp_disk_close(&to);
    }
    dp_disk_close(&from);
    if (st != DP_OK) {
        dp_manifest_files_clear(&out->files);
        *out = (struct dp_manifest_tail){0};
    }
    return st;
}
