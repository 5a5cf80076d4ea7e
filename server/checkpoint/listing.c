#include "server/checkpoint/listing.h"

#include "common/env/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct listing {
    const char *directory;
    struct dp_checkpoint_list *list;
};

static enum dp_status see(void *context, const char *name, struct dp_error *err)
{
    const struct listing *listing = context;
    struct dp_checkpoint_list *list = listing->list;
    struct dp_checkpoint_path manifest;
    uint32_t number;
    if (!dp_checkpoint_name_number(name, &number))
        return DP_OK;
    if (number > list->greatest)
        list->greatest = number;
    enum dp_status st =
        dp_checkpoint_path(&manifest, err, "%s/%s/" DP_MANIFEST_NAME, listing->directory, name);
    if (st != DP_OK || access(manifest.text, F_OK) != 0)
        return st;
    uint32_t *more = realloc(list->number, (list->count + 1) * sizeof more[0]);
    if (!more)
        return dp_fail(err, DP_NOMEM, "no memory for a list of checkpoints");
    list->number = more;
    list->number[list->count++] = number;
    return DP_OK;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

enum dp_status dp_checkpoint_list_read(const char *directory, struct dp_checkpoint_list *out,
                                       struct dp_error *err)
{
    struct listing listing = {directory, out};
    *out = (struct dp_checkpoint_list){0};
    enum dp_status st = dp_checkpoint_visit(directory, see, &listing, err);
    if (st != DP_OK)
        dp_checkpoint_list_clear(out);
    else if (out->count > 0)
        qsort(out->number, out->count, sizeof out->number[0], by_number);
    return st;
}

void dp_checkpoint_list_clear(struct dp_checkpoint_list *list)
{
    free(list->number);
    *list = (struct dp_checkpoint_list){0};
}

static enum dp_status find_last(const char *directory, uint32_t *number, struct dp_error *err)
{
    struct dp_checkpoint_list list;
    enum dp_status st = dp_checkpoint_list_read(directory, &list, err);
    if (st == DP_OK && list.count == 0)
        st = dp_fail(err, DP_NOT_FOUND,
                     "%s has no checkpoint: no directory checkpoint-N in it has a " DP_MANIFEST_NAME,
                     directory);
    if (st == DP_OK)
        *number = list.number[list.count - 1];
    dp_checkpoint_list_clear(&list);
    return st;
}

enum dp_status dp_checkpoint_find(const char *path, struct dp_checkpoint_path *directory, uint32_t *number,
                                  struct dp_error *err)
{
    enum dp_status st = dp_checkpoint_path(directory, err, "%s", path);
    size_t len = strlen(directory->text);
    if (st != DP_OK)
        return st;
    if (len > 0 && strcmp(path + (len > strlen(DP_MANIFEST_NAME) ? len - strlen(DP_MANIFEST_NAME) : 0),
                          DP_MANIFEST_NAME) == 0)
        len -= strlen(DP_MANIFEST_NAME);
    while (len > 1 && directory->text[len - 1] == '/')
        len--;
    directory->text[len] = '\0';
    char *slash = strrchr(directory->text, '/'), *name = slash ? slash + 1 : directory->text;
    if (!dp_checkpoint_name_number(name, number))
        return find_last(directory->text, number, err);
    struct dp_checkpoint_path manifest;
    st = dp_checkpoint_path(&manifest, err, "%s/" DP_MANIFEST_NAME, directory->text);
    if (st == DP_OK && access(manifest.text, F_OK) != 0)
        st = dp_fail(err, DP_NOT_FOUND, "%s is no checkpoint: it has no " DP_MANIFEST_NAME, directory->text);
    if (slash == directory->text)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    else
        (void)strcpy(directory->text, ".");
    return st;
}

enum dp_status dp_checkpoint_lock(const char *directory, int *lock, struct dp_error *err)
{
    struct dp_checkpoint_path path;
    *lock = -1;
    enum dp_status st = dp_directory_make(directory, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&path, err, "%s/lock", directory);
    if (st != DP_OK)
        return st;
    *lock = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*lock < 0)
        return dp_checkpoint_failed(err, "open", path.text);
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return DP_OK;
    st = errno == EWOULDBLOCK
             ? dp_fail(err, DP_IN_USE,
                       "another process makes or removes checkpoints in %s; wait until it has ended",
                       directory)
             : dp_checkpoint_failed(err, "lock", path.text);
    dp_checkpoint_unlock(lock);
    return st;
}

void dp_checkpoint_unlock(int *lock)
{
    if (*lock >= 0)
        (void)close(*lock);
    *lock = -1;
}
