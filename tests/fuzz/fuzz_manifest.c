/* Any bytes as a manifest, or as the part of one that a server sends: refused with a text, or a manifest that keeps what manifest.h
 * promises and is read again from its own text. A checksum that does not fit would end most of it: it is set anew first. */
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/manifest_json.h"
#include "server/store/store.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_files(const struct dp_manifest_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        DP_ASSERT(files->file[i].name[0] != '.' && !strchr(files->file[i].name, '/'));
        DP_ASSERT(strlen(files->file[i].checksum) == DP_CHECKSUM_TEXT - 1);
        DP_ASSERT(i == 0 || strcmp(files->file[i - 1].name, files->file[i].name) < 0);
    }
}

static void check_shard(const struct dp_manifest_shard *shard)
{
    struct dp_range range = dp_range_of_shard(shard->index, shard->shards);
    DP_ASSERT(shard->index < shard->shards && range.first == shard->range.first &&
              range.last == shard->range.last);
    DP_ASSERT(shard->after <= shard->lsn && shard->lsn <= shard->tail.last_lsn);
    check_files(&shard->files);
    check_files(&shard->tail.files);
    for (size_t i = 0; i < shard->tables.count; i++)
        DP_ASSERT(dp_table_check(&shard->tables.table[i].spec, NULL) == DP_OK);
}

static void try_shard(const char *text, size_t size)
{
    struct dp_manifest_shard shard, again;
    struct dp_error err = {0};
    if (dp_manifest_shard_parse(text, size, &shard, &err) != DP_OK) {
        DP_ASSERT(err.text[0] != '\0');
        return;
    }
    check_shard(&shard);
    char *printed = dp_manifest_shard_text(&shard);
    DP_ASSERT(printed && dp_manifest_shard_parse(printed, strlen(printed), &again, &err) == DP_OK);
    free(printed);
    dp_manifest_shard_clear(&again);
    dp_manifest_shard_clear(&shard);
}

static void try_whole(const char *text, size_t size)
{
    struct dp_manifest manifest, again;
    struct dp_error err = {0};
    if (dp_manifest_parse(text, size, &manifest, &err) != DP_OK) {
        DP_ASSERT(err.text[0] != '\0');
        return;
    }
    for (uint32_t i = 0; i < manifest.shards; i++)
        check_shard(&manifest.shard[i]);
    char *printed = dp_manifest_text(&manifest);
    DP_ASSERT(printed && dp_manifest_parse(printed, strlen(printed), &again, &err) == DP_OK);
    free(printed);
    dp_manifest_clear(&again);
    dp_manifest_clear(&manifest);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    try_whole((const char *)bytes, size);
    json_t *root = json_loadb((const char *)bytes, size, 0, NULL);
    if (!json_is_object(root)) {
        json_decref(root);
        return 0;
    }
    try_shard((const char *)bytes, size);
    char *sealed = dp_manifest_json_seal(root) ? json_dumps(root, 0) : NULL;
    if (sealed)
        try_whole(sealed, strlen(sealed));
    free(sealed);
    json_decref(root);
    return 0;
}
