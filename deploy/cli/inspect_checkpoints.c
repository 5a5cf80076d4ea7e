/* inspect of checkpoints: a table of them, or JSON; with --verify every byte of each.
 *     list (server/checkpoint/listing.h) -> manifest, and whether its files are there -> line */
#include "deploy/cli/amounts.h"
#include "deploy/cli/inspect_show.h"

#include "common/base/json.h"
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
    if (st == DP_OK && !l->json && !l->checksums)
        printf("%6s  %-20s %4s %6s %12s %9s %14s %10s %10s  %s\n", "number", "made", "run", "epoch", "push",
               "loss", "rows", "bytes", "new", "files");
    for (size_t i = 0; i < list.count; i++)
        if (number == 0 || list.number[i] == number)
            show_one(l, list.number[i]);
    dp_checkpoint_list_clear(&list);
    if (st != DP_OK || l->json)
        return st == DP_OK ? show_json(l, err) : st;
    if (!l->checksums)
        printf("Only the sizes of files were compared: 'downpour inspect %s --verify' reads all bytes.\n",
               l->directory);
    else if (l->damaged == 0)
        printf("%" PRIu64 " files, %" PRIu64 " bytes: all as their manifests say\n", l->files, l->bytes);
    return DP_OK;
}

bool dp_show_has_checkpoints(const char *path)
{
    struct dp_checkpoint_path directory;
    struct dp_error unheard = {0};
    uint32_t number;
    return dp_checkpoint_find(path, &directory, &number, &unheard) == DP_OK;
}

enum dp_status dp_show_checkpoints(const char *path, bool verify, bool json, struct dp_error *err)
{
    struct dp_checkpoint_path directory;
    uint32_t number;
    size_t len = strlen(path);
    enum dp_status st = dp_checkpoint_find(path, &directory, &number, err);
    if (st != DP_OK)
        return st;
    while (len > 1 && path[len - 1] == '/')
        len--;
    bool all = strlen(directory.text) == len && memcmp(directory.text, path, len) == 0;
    struct checkpoint_listing l = {.directory = directory.text,
                                   .json = json,
                                   .checksums = verify,
                                   .array = json_array(),
                                   .damages = json_array()};
    st = show_all(&l, all ? 0 : number, err);
    if (st == DP_OK && l.damaged > 0) {
        *err = l.first;
        st = dp_wrap(err, l.first.status,
                     "%" PRIu32
                     " damaged checkpoint%s: restore from another one, and make a new one; the first",
                     l.damaged, l.damaged == 1 ? "" : "s");
    }
    json_decref(l.array);
    json_decref(l.damages);
    return st;
}
