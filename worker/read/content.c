#include "worker/read/content.h"

#include "common/base/bytes.h"
#include "common/model/mix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

uint64_t dp_content_digest(uint64_t digest, uint64_t word)
{
    return dp_mix((digest + DP_HASH_GOLDEN) ^ word);
}

uint64_t dp_content_digest_bytes(uint64_t digest, const void *bytes, uint64_t len)
{
    const uint8_t *at = bytes;
    uint64_t i = 0;
    for (; i + 8 <= len; i += 8)
        digest = dp_content_digest(digest, dp_load_u64le(at + i));
    for (; i < len; i++)
        digest = dp_content_digest(digest, at[i]);
    return digest;
}

enum dp_status dp_content_grow(void *array, uint64_t count, size_t each, struct dp_error *err)
{
    void *block;
    memcpy(&block, array, sizeof block);
    void *grown = count <= SIZE_MAX / each ? realloc(block, count * each) : NULL;
    if (!grown)
        return dp_fail(err, DP_NOMEM,
                       "no memory for %" PRIu64 " decoded numbers: the data set must fit in memory", count);
    memcpy(array, &grown, sizeof grown);
    return DP_OK;
}

void dp_content_clear(struct dp_content *content)
{
    if (content->mapped) {
        (void)munmap(content->mapped, content->mapped_bytes);
        *content = (struct dp_content){0};
        return;
    }
    free(content->labels);
    free(content->weights);
    free(content->offsets);
    free(content->keys);
    free(content->values);
    free(content->pixels);
    free(content->codes);
    free(content->schema);
    *content = (struct dp_content){0};
}

/* Without sorting: the size of the take-th largest is found by binary search, with a pass over the examples
 * for each of its bits. */
uint64_t dp_content_worst(const struct dp_content *content, uint64_t take, uint32_t list,
                          uint64_t (*entries)(const struct dp_content *content, uint64_t example,
                                              uint32_t list))
{
    uint64_t low = 0,
             high = 0; /* at most `take` examples are larger than high; more than `take` than low - 1 */
    for (uint64_t i = 0; i < content->examples; i++)
        if (entries(content, i, list) > high)
            high = entries(content, i, list);
    while (low < high) {
        uint64_t mid = low + (high - low) / 2, larger = 0;
        for (uint64_t i = 0; i < content->examples; i++)
            larger += entries(content, i, list) > mid;
        if (larger <= take)
            high = mid;
        else
            low = mid + 1;
    }
    uint64_t sum = 0, larger = 0;
    for (uint64_t i = 0; i < content->examples; i++)
        if (entries(content, i, list) > low) {
            sum += entries(content, i, list);
            larger++;
        }
    return sum + (take - larger) * low;
}
