/* checkpoints: the checkpoints in a directory, as a table or as JSON. verify: every byte of one, or of all.
 *     list (server/checkpoint/listing.h) -> manifest, and whether its files are there -> line */
#include "deploy/checkpoint/amounts.h"
#include "deploy/checkpoint/checkpoint_commands.h"
#include "deploy/cli/options_words.h"
#include "deploy/cli/path.h"

#include "common/base/deadline.h"
#include "common/base/json.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/verify.h"
#include "server/durable/table_mark.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct dp_option list_options[] = {
    {"--json", NULL, "print one JSON object: {\"checkpoints\": [...]}", NULL, NULL},
};

static const struct dp_command list_command = {
    .name = "checkpoints",
    .usage = "DIR [--json]",
    .summary =
        "Lists the checkpoints in DIR: number, when it was made, training run, epoch and push, loss, rows, "
        "bytes, bytes that "
        "were\nnew, and whether its files are there, in the right sizes ('downpour verify' reads them all). "
        "Exit code 2 if one's "
        "are not.",
    .options = list_options,
    .count = sizeof list_options / sizeof list_options[0],
};

static const struct dp_option verify_options[] = {
    {"--json", NULL, "print one JSON object, with each damaged place", NULL, NULL},
};

static const struct dp_command verify_command = {
    .name = "verify",
    .usage = "DIR [NUMBER] [--json]",
    .summary = "Reads every file of a checkpoint in DIR and compares it with its checksum: of number NUMBER, "
               "or of all. DIR may also "
               "be\nDIR/checkpoint-N. Names each file that is damaged, missing or too many; exit code 2 if "
               "there is one.",
    .options = verify_options,
    .count = sizeof verify_options / sizeof verify_options[0],
};

struct checkpoint_listing {
    const char *directory;
    uint32_t number; /* that is looked at */
    bool json, checksums;
    json_t *array, *damages;
    uint32_t damaged; /* checkpoints */
    uint32_t named;   /* the one whose damage was printed last */
    uint64_t files, bytes;
    struct dp_error first; /* damage */
};

/* ---- one */

static uint64_t rows_of(const struct dp_manifest *m, bool *known)
{
    uint64_t rows = 0;
    *known = true;
    for (size_t t = 0; t < m->tables.count; t++) {
        uint64_t one = m->tables.table[t].rows;
        *known = *known && one != DP_TABLE_ROWS_UNKNOWN;
        rows += one != DP_TABLE_ROWS_UNKNOWN ? one : 0;
    }
    return rows;
}

static void add_json(struct checkpoint_listing *l, uint32_t number, const struct dp_manifest *m,
                     const struct dp_error *why)
{
    json_t *one = json_object();
    bool known = false;
    dp_json_set_u64(one, "number", number);
    json_object_set_new(one, "whole", json_boolean(why->status == DP_OK));
    if (why->status != DP_OK)
        json_object_set_new(one, "damage", json_string(why->text));
    if (m->made) {
        uint64_t rows = rows_of(m, &known);
        json_object_set_new(one, "made", json_string(m->made));
        json_object_set_new(one, "cluster", json_string(m->cluster_name));
        dp_json_set_u64(one, "generation", m->generation);
        dp_json_set_u64(one, "shards", m->shards);
        if (known)
            dp_json_set_u64(one, "rows", rows);
        dp_json_set_u64(one, "bytes", m->bytes);
        dp_json_set_u64(one, "bytes_new", m->bytes_new);
        dp_json_set_u64(one, "partial_pushes", m->partial.count);
    }
    if (m->position.known) {
        dp_json_set_u64(one, "run", m->position.run);
        dp_json_set_u64(one, "epoch", m->position.epoch + 1u);
        dp_json_set_u64(one, "step", m->position.step);
        dp_json_set_real(one, "loss", m->position.loss);
    }
    json_array_append_new(l->array, one);
}

static void print_line(uint32_t number, const struct dp_manifest *m, const struct dp_error *why)
{
    char bytes[32] = "?", new[32] = "?", rows[32] = "?", run[16] = "-", epoch[16] = "-", step[32] = "-",
         loss[32] = "-", partial[40] = "";
    uint32_t pushes = m->partial.count;
    bool known = false;
    if (m->made) {
        uint64_t count = rows_of(m, &known);
        (void)dp_amount_bytes(m->bytes, bytes);
        (void)dp_amount_bytes(m->bytes_new, new);
        if (known)
            (void)dp_cli_number((double)count, rows, sizeof rows);
    }
    if (m->position.known) {
        (void)snprintf(run, sizeof run, "%" PRIu32, m->position.run);
        (void)snprintf(epoch, sizeof epoch, "%" PRIu32, m->position.epoch + 1u);
        (void)dp_cli_number((double)m->position.step, step, sizeof step);
        if (isfinite(m->position.loss))
            (void)snprintf(loss, sizeof loss, "%.4f", m->position.loss);
    }
    if (pushes > 0)
        (void)snprintf(partial, sizeof partial, ", %" PRIu32 " partial pushes", pushes);
    printf("%6" PRIu32 "  %-20s %4s %6s %12s %9s %14s %10s %10s  %s%s\n", number, m->made ? m->made : "?",
           run, epoch, step, loss, rows, bytes, new, why->status == DP_OK ? "whole" : "DAMAGED", partial);
}

/* A file of the pool does not say of which checkpoint it is. */
static void print_damage(struct checkpoint_listing *l, const char *text)
{
    if (l->named != l->number)
        printf("checkpoint %" PRIu32 " is damaged:\n", l->number);
    l->named = l->number;
    printf("  %s\n", text);
}

static void note_damage(void *context, const struct dp_error *what)
{
    struct checkpoint_listing *l = context;
    char text[sizeof what->text];
    (void)snprintf(text, sizeof text, "%s", what->text);
    dp_text_clean(text);
    if (l->json)
        json_array_append_new(l->damages, json_string(text));
    else if (l->checksums)
        print_damage(l, text);
}

static void show_one(struct checkpoint_listing *l, uint32_t number)
{
    struct dp_manifest manifest = {0};
    struct dp_checkpoint_path path;
    struct dp_verify seen = {0};
    struct dp_error why = {0};
    const struct dp_verify_options verify = {.directory = l->directory,
                                             .number = number,
                                             .checksums = l->checksums,
                                             .damaged = note_damage,
                                             .context = l};
    l->number = number;
    enum dp_status st = dp_checkpoint_path_of(l->directory, number, &path, &why);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, &why, "%s/checkpoint-%06" PRIu32 "/" DP_MANIFEST_NAME, l->directory,
                                number);
    if (st == DP_OK)
        st = dp_manifest_read(path.text, &manifest, &why);
    if (st == DP_OK)
        st = dp_checkpoint_verify(&verify, &seen, &why);
    why.status = st;
    l->files += seen.files;
    l->bytes += seen.bytes;
    if (st != DP_OK && l->damaged++ == 0)
        l->first = why;
    if (l->json)
        add_json(l, number, &manifest, &why);
    else if (!l->checksums)
        print_line(number, &manifest, &why);
    dp_manifest_clear(&manifest);
}

/* ---- all */

static enum dp_status show_json(struct checkpoint_listing *l, struct dp_error *err)
{
    json_t *root = json_object();
    json_object_set(root, "checkpoints", l->array);
    if (l->checksums)
        json_object_set(root, "damages", l->damages);
    char *text = json_dumps(root, JSON_COMPACT);
    if (text)
        printf("%s\n", text);
    json_decref(root);
    free(text);
    return text ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for JSON");
}

/* number 0: all. */
static enum dp_status show_all(struct checkpoint_listing *l, uint32_t number, struct dp_error *err)
{
    struct dp_checkpoint_list list = {0};
    enum dp_status st = dp_checkpoint_list_read(l->directory, &list, err);
    uint32_t shown = 0;
    if (st != DP_OK)
        return st;
    if (!l->json && !l->checksums && list.count > 0)
        printf("%6s  %-20s %4s %6s %12s %9s %14s %10s %10s  %s\n", "number", "made", "run", "epoch", "push",
               "loss", "rows", "bytes", "new", "files");
    for (size_t i = 0; i < list.count; i++) {
        if (number != 0 && list.number[i] != number)
            continue;
        show_one(l, list.number[i]);
        shown++;
    }
    dp_checkpoint_list_clear(&list);
    if (number != 0 && shown == 0)
        return dp_fail(err, DP_NOT_FOUND,
                       "there is no checkpoint %" PRIu32 " in %s: 'downpour checkpoints' lists them", number,
                       l->directory);
    if (l->checksums && shown == 0)
        return dp_fail(err, DP_NOT_FOUND,
                       "there is no checkpoint in %s: one is a directory checkpoint-N in it, with a "
                       "manifest.json",
                       l->directory);
    if (l->json)
        return show_json(l, err);
    if (shown == 0)
        printf("There is no checkpoint in %s.\n", l->directory);
    else if (!l->checksums)
        printf("Only the sizes of files were compared: 'downpour verify %s' reads all bytes.\n",
               l->directory);
    return DP_OK;
}

static enum dp_status run(const struct dp_command *command, int argc, char *const *argv, bool *helped,
                          struct dp_error *err)
{
    bool verifies = command == &verify_command;
    const char *values[1];
    struct dp_words words = {0};
    struct dp_checkpoint_path directory;
    struct checkpoint_listing l = {.array = json_array(), .damages = json_array(), .checksums = verifies};
    uint64_t number = 0;
    uint32_t named = 0;
    enum dp_status st = dp_words_split(command, NULL, argc, argv, &words, err);
    if (st == DP_OK)
        st = dp_options_parse(command, words.rest_count, words.rest, values, helped, err);
    if (st != DP_OK || *helped)
        goto done;
    if (words.words < 1 || words.words > (verifies ? 2u : 1u)) {
        st = dp_fail(err, DP_ARGUMENT, "give the directory of the checkpoints: downpour %s %s", command->name,
                     command->usage);
        goto done;
    }
    if (words.words == 2)
        st = dp_parse_u64(words.word[1], 1, DP_CHECKPOINT_NUMBER_MAX, "NUMBER", &number, err);
    l.directory = words.word[0];
    l.json = values[0] != NULL;
    /* DIR/checkpoint-N names one. */
    struct dp_error none = {0};
    char last[DP_PATH_MAX + 1];
    (void)snprintf(last, sizeof last, "%s", words.word[0]);
    for (size_t n = strlen(last); n > 1 && last[n - 1] == '/'; n--)
        last[n - 1] = '\0';
    const char *slash = strrchr(last, '/');
    if (st == DP_OK && number == 0 && dp_checkpoint_name_number(slash ? slash + 1 : last, &named) &&
        dp_checkpoint_find(words.word[0], &directory, &named, &none) == DP_OK) {
        l.directory = directory.text;
        number = named;
    }
    if (st == DP_OK)
        st = show_all(&l, (uint32_t)number, err);
    if (st == DP_OK && verifies && !l.json && l.damaged == 0)
        printf("%" PRIu64 " files, %" PRIu64 " bytes: all as their manifests say\n", l.files, l.bytes);
    if (st == DP_OK && l.damaged > 0) {
        *err = l.first;
        st = dp_wrap(err, l.first.status,
                     "%" PRIu32
                     " damaged checkpoint%s: restore from another one, and make a new one; the first",
                     l.damaged, l.damaged == 1 ? "" : "s");
    }
done:
    json_decref(l.array);
    json_decref(l.damages);
    dp_words_clear(&words);
    return st;
}

static int command_of(const struct dp_command *command, int argc, char *const *argv)
{
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st = run(command, argc, argv, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(command);
    if (fflush(stdout) != 0 && st == DP_OK)
        st = dp_fail(&err, DP_IO, "cannot write to standard output");
    if (st == DP_OK)
        return 0;
    dp_text_clean(err.text);
    fprintf(stderr, "downpour: %s: %s\n", command->name, err.text);
    return 2;
}

int dp_deploy_checkpoints(int argc, char *const *argv)
{
    return command_of(&list_command, argc, argv);
}

int dp_deploy_verify(int argc, char *const *argv)
{
    return command_of(&verify_command, argc, argv);
}
