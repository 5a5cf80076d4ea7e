/* Tokenizer: cuts a text into words, block by block.
 *     {.kind} -> (next, next, ... for each block) -> end
 * Kinds     plain   bytes between blanks and line ends, as they are
 *           simple  runs of letters, digits and underscores, in lower case (as gensim's simple_preprocess)
 * Promise   A function of the bytes alone: blocks and locale do not matter. Lower case is that of Unicode
 *           for Latin, Greek, Cyrillic and Armenian letters; others stay. Bytes that are not UTF-8 count as
 *           letters.
 * Thread    One thread uses one tokenizer.
 * Memory    A word may have any length: its first DP_VOCAB_TEXT_MAX bytes are kept, and all are hashed. */
#ifndef DP_VOCAB_TOKENIZER_H
#define DP_VOCAB_TOKENIZER_H

#include "common/vocab/vocab.h"

enum dp_word_rule { DP_WORD_PLAIN, DP_WORD_SIMPLE };

struct dp_tokenizer {
    enum dp_word_rule kind;
    /* The word that ended last, until the next call. */
    uint64_t hash;
    char text[DP_VOCAB_TEXT_MAX];
    size_t len;
    bool first; /* of its line */

    bool begun, inside;    /* a word, a line with a word */
    unsigned char part[4]; /* of a character that the end of a block cut */
    uint32_t parts;
};

/* Takes bytes up to the end of the next word, or all. Returns how many; *word: a word ended. */
size_t dp_tokenizer_next(struct dp_tokenizer *tokenizer, const unsigned char *bytes, size_t len, bool *word);
/* Ends the text. Whether a word ended with it. */
bool dp_tokenizer_end(struct dp_tokenizer *tokenizer);
/* Cuts a complete text, and writes it as a word to `out`. Returns false unless it is exactly one
 * word that fits. */
bool dp_tokenizer_word(enum dp_word_rule kind, const char *text, char *out, size_t size);

#endif
