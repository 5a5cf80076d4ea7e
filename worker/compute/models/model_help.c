#include "worker/compute/models/model_help.h"

#include <string.h>

#define COUNTS_CRITEO "how many categories an example has"
#define CLICKS_READS                                                                                         \
    "clicks (Criteo: columns=13,fields=26, the defaults) and CSV with exactly that many columns of numbers " \
    "and categories; labels 0 and 1"
#define CLICKS_OPTIONS                                                                                       \
    {"fields", "N", "26", COUNTS_CRITEO " (1 .. 4096)"},                                                     \
        {"columns", "N", "13", "how many numbers an example has (0 .. 65536)"},                              \
    {                                                                                                        \
        "dropout", "X", "0", "share of each hidden layer's values that a minibatch leaves out (0 .. 0.99)"   \
    }

static const struct dp_model_help models[] = {
    {"logistic",
     "logistic",
     "logistic",
     "logistic regression: a weight for each feature, and a bias",
     "",
     "features (libsvm), clicks and CSV of any columns; labels 0 and 1",
     {{0}}},
    {"fm",
     "fm:K",
     "fm:8",
     "factorization machine: logistic regression, and the products of all pairs of features (Rendle 2010)",
     "K: factors of each feature (1 .. 65536); 4 to 16 are usual",
     "features (libsvm), clicks and CSV of any columns; labels 0 and 1, any number with loss=squared",
     {{"loss", "logistic|squared", "logistic", "squared: regression"},
      {"l2", "X", "0", "L2 regularization of the factors alone, which fit noise first; 0.001 is a start"}}},
    {"mlp",
     "mlp:IN-...-OUT",
     "mlp:784-256-128-10",
     "multilayer perceptron: dense layers, an activation between them",
     "IN: numbers in an example (pixels of an image, columns of a CSV file); then the width of each hidden "
     "layer; OUT: classes, or 1",
     "images (idx), features (libsvm) numbered up to IN, and CSV of numbers; labels: classes, any number "
     "with loss=squared, 0 and 1 with loss=logistic",
     {{"activation", "relu|sigmoid|tanh", "relu", "between layers"},
      {"loss", "softmax|logistic|squared", "softmax", "softmax: OUT classes; the others want OUT = 1"}}},
    {"mf",
     "mf:K",
     "mf:16",
     "matrix factorization: a user's factors times an item's, and their biases",
     "K: factors of each user and item (1 .. 65536); 16 to 64 are usual",
     "pairs of users and items that met",
     {{"loss", "logistic|bpr", "logistic",
       "logistic: an interaction or a random draw; bpr: an item with an interaction ranks above another one "
       "(Rendle et al. 2009)"}}},
    {"neumf",
     "neumf:K-W-...-LAST",
     "neumf:16-64-32-16",
     "neural collaborative filtering: products of factors, with dense layers (He et al. 2017)",
     "K: factors of the products; W: input of the layers, half of it from the user's row and half from the "
     "item's (even); then the width of each layer",
     "pairs of users and items that met",
     {{0}}},
    {"wide-deep",
     "wide-deep:R-W-...-LAST",
     "wide-deep:16-256-128",
     "a linear part, with dense layers over the rows of categories and the numbers (Cheng et al. 2016)",
     "R: width of a category's row; then the width of each hidden layer",
     CLICKS_READS,
     {CLICKS_OPTIONS}},
    {"deepfm",
     "deepfm:R-W-...-LAST",
     "deepfm:16-256-128",
     "wide-deep with a factorization machine over the same rows (Guo et al. 2017)",
     "R: width of a category's row; then the width of each hidden layer",
     CLICKS_READS,
     {CLICKS_OPTIONS}},
    {"dlrm",
     "dlrm:R",
     "dlrm:64",
     "products of all pairs of categories' rows and of the numbers' vector, then layers (Naumov et al. 2019)",
     "R: width of a category's row, and of the numbers' vector",
     "clicks (Criteo: columns=13,fields=26, the defaults) and CSV with exactly that many columns of numbers "
     "(1 at least) and categories; labels 0 and 1",
     {{"bottom", "W-...", "512-256", "widths of the layers that the numbers go through"},
      {"top", "W-...", "512-256", "widths of the layers after the products"},
      {"tables", "one|fields", "one", "fields: each category has a table of its own (31 at most)"},
      {"fields", "N", "26", COUNTS_CRITEO " (1 .. 4096)"},
      {"columns", "N", "13", "how many numbers an example has (1 .. 65536)"}}},
    {"skipgram",
     "skipgram:D",
     "skipgram:64",
     "word vectors: a word's vector times that of a word near it (word2vec, Mikolov et al. 2013)",
     "D: width of a word's vector (1 .. 65536); 50 to 300 are usual",
     "text: its words, --window apart at most",
     {{0}}},
    {"lstm",
     "lstm:T-R-C",
     "lstm:16-32-64",
     "language model: an LSTM over T tokens predicts the next one (Gers et al. 2000)",
     "T: tokens in a window (at most 51); R: width of a token's row; C: cells",
     "text: its bytes",
     {{"classes", "N", "256", "how many different tokens there are"},
      {"recompute", "0|1", "0", "1: less memory, more computing"}}},
};
#define MODELS (sizeof models / sizeof models[0])

const struct dp_model_help *dp_model_help(size_t number)
{
    return number < MODELS ? &models[number] : NULL;
}

#define TEXT_AT    12
#define TEXT_WIDTH 100

/* "  label     words words", broken between words at TEXT_WIDTH. */
static void print(const char *label, const char *text, FILE *file)
{
    int at = fprintf(file, "  %-*s", TEXT_AT - 2, label);
    for (const char *word = text; *word;) {
        int len = (int)strcspn(word, " ");
        if (at > TEXT_AT && at + 1 + len > TEXT_WIDTH)
            at = fprintf(file, "\n%*s", TEXT_AT, "") - 1;
        else if (at > TEXT_AT)
            at += fprintf(file, " ");
        at += fprintf(file, "%.*s", len, word);
        word += len + (word[len] == ' ');
    }
    (void)fputc('\n', file);
}

static void print_one(const struct dp_model_help *model, FILE *file)
{
    char label[64], text[512];
    (void)fprintf(file, "\n%s\n", model->grammar);
    print("", model->about, file);
    if (model->shape[0])
        print("shape", model->shape, file);
    print("data", model->reads, file);
    for (int i = 0; i < DP_MODEL_HELP_OPTIONS_MAX && model->option[i].name; i++) {
        (void)snprintf(label, sizeof label, i == 0 ? "options" : "");
        (void)snprintf(text, sizeof text, "%s=%s  (default %s) %s", model->option[i].name,
                       model->option[i].values, model->option[i].start, model->option[i].about);
        print(label, text, file);
    }
    print("example", model->example, file);
}

bool dp_model_help_print(const char *name, FILE *file)
{
    bool found = false;
    for (size_t i = 0; i < MODELS; i++)
        found |= !name || strcmp(models[i].name, name) == 0;
    if (!found)
        return false;
    if (!name)
        (void)fputs("Usage: --model NAME[:SHAPE][,OPTION=VALUE ...]\n\nDashes separate the numbers of a "
                    "shape. The data format is detected from the model and the file's\nfirst bytes; "
                    "README.md shows a line of each.\n",
                    file);
    for (size_t i = 0; i < MODELS; i++)
        if (!name || strcmp(models[i].name, name) == 0)
            print_one(&models[i], file);
    return true;
}
