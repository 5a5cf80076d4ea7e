#include "worker/history/names_file.h"

#include "common/base/log.h"
#include "common/model/mix.h"
#include "common/vocab/vocab.h"

/* The settings that, besides the data, determine names and keys. */
static uint64_t source_of(const struct dp_names_source *source)
{
    const struct dp_dataset_options *o = source->options;
    const uint64_t numbers[] = {dp_dataset_digest(source->data), (uint64_t)o->form, o->hash_bits,
                                o->index_base, o->width};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sum = dp_mix(sum + numbers[i] + 1);
    return sum;
}

static enum dp_status add(void *context, const struct dp_vocab_name *name, struct dp_error *err)
{
    return dp_vocab_add(context, name, err);
}

enum dp_status dp_names_file_put(const struct dp_names_source *source, const char *path, struct dp_error *err)
{
    uint64_t digest = source_of(source);
    struct dp_vocab_writer *writer = NULL;
    bool cut = false;
    if (dp_vocab_is_of(path, source->run, digest))
        return DP_OK;
    enum dp_status st = dp_vocab_begin(path, source->run, digest, &writer, err);
    if (st == DP_OK)
        st = dp_dataset_names(source->data, source->options, (struct dp_vocab_sink){add, writer}, &cut, err);
    if (st == DP_OK)
        st = dp_vocab_commit(&writer, cut, err);
    dp_vocab_drop(&writer);
    if (st == DP_OK && cut)
        dp_log(DP_LOG_WARN,
               "%s: it has more names than '%s' can hold; further features, words or ids are exported as "
               "numbers",
               source->options->path, path);
    return st;
}
