#include "worker/read/tabular.h"

#include <stdio.h>
#include <string.h>

static const struct dp_tabular *const formats[] = {&dp_tabular_csv};

#define FORMATS (sizeof formats / sizeof formats[0])

const struct dp_tabular *dp_tabular_named(const char *name)
{
    for (size_t i = 0; name && i < FORMATS; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

size_t dp_tabular_list(char *out, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < FORMATS && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, ", %s", formats[i]->name);
    return len;
}

const struct dp_tabular *dp_tabular_begins(const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; len > 0 && i < FORMATS; i++)
        if (formats[i]->begins(bytes, len))
            return formats[i];
    return NULL;
}

enum dp_status dp_tabular_records(const char *format, struct dp_unpack *unpack, struct dp_tabular_sink sink,
                                  struct dp_error *err)
{
    const unsigned char *bytes = NULL;
    size_t len = 0;
    const struct dp_tabular *found = dp_tabular_named(format);
    enum dp_status st = found ? DP_OK : dp_unpack_peek(unpack, &bytes, &len, err);
    if (st != DP_OK)
        return st;
    found = found ? found : dp_tabular_begins(bytes, len);
    return (found ? found : &dp_tabular_csv)->records(unpack, sink, err);
}

enum dp_status dp_tabular_read(const struct dp_dataset_options *options, const char *path,
                               struct dp_tabular_sink sink, struct dp_error *err)
{
    struct dp_unpack *unpack = NULL;
    enum dp_status st = dp_unpack_open_text(path, options->encoding, &unpack, err);
    if (st == DP_OK)
        st = dp_tabular_records(options->format, unpack, sink, err);
    dp_unpack_close(&unpack);
    return st;
}
