#include "common/config/nearest.h"

#include <string.h>

#define WORD_MAX 63

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance (Damerau 1964, without overlapping swaps). */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned row[WORD_MAX + 1][WORD_MAX + 1];
    for (unsigned i = 0; i <= a_len; i++)
        row[i][0] = i;
    for (unsigned j = 0; j <= b_len; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        for (size_t j = 1; j <= b_len; j++) {
            unsigned change = row[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            row[i][j] = least(change, least(row[i - 1][j], row[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[i][j] = least(row[i][j], row[i - 2][j - 2] + 1);
        }
    }
    return row[a_len][b_len];
}

const char *dp_nearest(const char *word, const char *const *words, size_t count)
{
    size_t len = strlen(word);
    const char *best = NULL;
    unsigned best_distance = WORD_MAX;
    if (len == 0 || len > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(words[i]);
        if (other > WORD_MAX)
            continue;
        unsigned d = distance(word, len, words[i], other);
        size_t longer = len > other ? len : other;
        unsigned allowed = longer < 6 ? 1 : (unsigned)(longer / 3);
        if (d > allowed && len >= 3 && strncmp(words[i], word, len) == 0)
            d = allowed; /* a beginning of it: as good as the worst that is allowed */
        if (d <= allowed && d < best_distance) {
            best = words[i];
            best_distance = d;
        }
    }
    return best;
}
