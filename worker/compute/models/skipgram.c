/* Word vectors (Mikolov et al. 2013): a word's vector times those of near words, against words drawn at
 * random. The first kind starts at random, the second at 0, as in word2vec.
 * Why       A minibatch has many words: they share rows, so that a pull and a push cost little for each.
 *           Adam has no first mean, and an epsilon above most of a seldom word's gradients: its step is then
 *           a share of the gradient, as word2vec's is, and that of a frequent word stays bounded. With the
 *           usual epsilon a seldom word moves as far as a frequent one, and analogies are lost. */
#include "worker/compute/model_kind.h"

static enum dp_status declare(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err)
{
    struct dp_graph *g = model->graph;
    uint32_t width;
    enum dp_status st = dp_model_shape_number(text, "width", DP_TABLE_DIM_MAX, &width, err);
    if (st != DP_OK)
        return st;
    int words = dp_graph_group(g), near = dp_graph_group(g);
    int word = dp_graph_list(g, words, 0), others = dp_graph_list(g, near, 0);
    struct dp_init_spec uniform = {.kind = DP_INIT_UNIFORM, .scale = 0.5f / (float)width};
    int v = dp_graph_gather_sum(g, dp_graph_sparse(g, words, "skipgram.word", width, uniform), word);
    dp_graph_loss(g, DP_OP_MEAN_LOSS,
                  dp_graph_near(g, v, dp_model_rows(g, near, "skipgram.near", width, 0), others));
    model->form = DP_FORM_WORDS;
    model->settings = "data.words=simple,data.min_count=5,data.subsample=0.001,"
                      "training.optimizer.beta1=0,training.optimizer.epsilon=5e-5";
    model->labels = DP_LABELS_NONE;
    model->batch_max = 2048;
    model->rate = 0.1;
    return DP_OK;
}

const struct dp_model_kind dp_model_skipgram = {
    "skipgram",
    "skipgram:D",
    "skipgram:64",
    "word vectors: a word's vector times that of a word near it (word2vec, Mikolov et al. 2013)",
    "D: width of a word's vector (1 .. 65536); 50 to 300 are usual",
    "text: its words, --window apart at most; --words, --min-count and --subsample choose them",
    {{0}},
    declare,
    NULL,
    1000,
    5,
    true};
