/* What a store says of itself over its openings, and that a gate which refuses leaves it as it was. */
#include "server/store/store_id.h"

#include "server/store/store_view.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct guard {
    struct dp_store_id found, put, entered;
    bool is_new;
    uint32_t admits, enters;
    enum dp_status admit_status, enter_status;
    const char *directory;            /* of the store */
    enum dp_store_view_state at_gate; /* as one that is killed before it is registered leaves it */
};

static enum dp_store_view_state state_of(const char *directory, struct dp_store_id *id);

static enum dp_status admit(void *context, const struct dp_store_id *found, bool is_new,
                            struct dp_store_id *put, struct dp_error *err)
{
    struct guard *guard = context;
    guard->found = *found;
    guard->is_new = is_new;
    guard->admits++;
    if (guard->put.id != 0)
        *put = guard->put;
    return guard->admit_status == DP_OK ? DP_OK : dp_fail(err, guard->admit_status, "not admitted");
}

static enum dp_status entered(void *context, const struct dp_store_id *id, struct dp_error *err)
{
    struct guard *guard = context;
    struct dp_store_id said;
    guard->entered = *id;
    guard->enters++;
    if (guard->directory) {
        guard->at_gate = state_of(guard->directory, &said);
        assert_memory_equal(&said, id, sizeof said);
    }
    return guard->enter_status == DP_OK ? DP_OK : dp_fail(err, guard->enter_status, "not registered");
}

static void assert_same(struct dp_store_id a, struct dp_store_id b)
{
    assert_true(a.id == b.id && a.register_id == b.register_id);
    assert_true(a.opening == b.opening && a.before == b.before);
}

static uint32_t names_in(const char *directory)
{
    DIR *list = opendir(directory);
    uint32_t names = 0;
    assert_non_null(list);
    while (readdir(list))
        names++;
    (void)closedir(list);
    return names;
}

static enum dp_store_view_state state_of(const char *directory, struct dp_store_id *id)
{
    struct dp_store_view *view;
    struct dp_error err = {0};
    assert_int_equal(dp_store_view_open(directory, NULL, &view, &err), DP_OK);
    enum dp_store_view_state state = dp_store_view_own(view)->state;
    *id = dp_store_view_own(view)->id;
    dp_store_view_close(&view);
    return state;
}

static void is_drawn_once(void **state)
{
    struct form *form = form_new(true), *second = form_new(true);
    struct dp_store_id id = {0}, other = {0}, again = {0};
    struct dp_error err = {0};
    form->options.id = &id;
    second->options.id = &other;
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_int_equal(form_open(second, &err), DP_OK);
    assert_true(id.id != 0 && other.id != 0 && id.id != other.id);
    form_close(form, true);
    form->options.id = &again;
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_same(again, id);
    form_free(form);
    form_free(second);
}

/* Killed between its own word and the register's, it has lost nothing: without a journal, too, it is not refused. */
static void is_clean_until_it_is_registered(void **state)
{
    for (int journaled = 0; journaled < 2; journaled++) {
        struct form *form = form_new(true);
        struct guard guard = {.put = {.id = 11, .register_id = 22, .opening = 33}};
        const struct dp_store_gate gate = {.admit = admit, .entered = entered, .context = &guard};
        struct dp_store_id id;
        struct dp_error err = {0};
        guard.directory = form->options.directory;
        form->options.gate = &gate;
        form->options.journaled = journaled;
        for (int again = 0; again < 2; again++) { /* made, and opened again */
            assert_int_equal(form_open(form, &err), DP_OK);
            assert_int_equal(guard.at_gate, DP_STORE_VIEW_CLEAN);
            assert_int_equal(state_of(guard.directory, &id),
                             journaled ? DP_STORE_VIEW_OPEN_JOURNALED : DP_STORE_VIEW_OPEN);
            form_close(form, true);
        }
        form_free(form);
    }
}

/* Closed, cleanly or not. */
static void stays(void **state)
{
    struct form *form = form_new(true);
    const struct dp_store_id is = {.id = 11, .register_id = 22, .opening = 33, .before = 44};
    struct guard guard = {.put = is};
    const struct dp_store_gate gate = {.admit = admit, .entered = entered, .context = &guard};
    struct dp_error err = {0};
    form->options.gate = &gate;
    form->options.journaled = true;
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_true(guard.is_new);
    assert_int_equal(guard.admits, 1);
    assert_same(guard.entered, is);
    form_close(form, false); /* as killed */
    guard = (struct guard){0};
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_false(guard.is_new);
    assert_same(guard.found, (struct dp_store_id){11, 22, 33, 33, 0, 0}); /* it was registered */
    form_close(form, true);
    guard = (struct guard){.put = {.id = 11, .register_id = 22, .opening = 55, .before = 33}};
    assert_int_equal(form_open(form, &err), DP_OK);
    form_close(form, true);
    struct dp_store_id last = {11, 22, 55, 55, 0, 0};
    guard = (struct guard){0};
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_same(guard.found, last);
    form_free(form);
}

static void refused_changes_nothing(void **state)
{
    struct form *form = form_new(true);
    struct guard guard = {.admit_status = DP_EXISTS};
    const struct dp_store_gate gate = {.admit = admit, .entered = entered, .context = &guard};
    const struct dp_store_id is = {.id = 11, .register_id = 22, .opening = 33};
    struct dp_store_id found;
    struct dp_error err = {0};
    form->options.gate = &gate;
    uint32_t names = names_in(form->directory);
    assert_int_equal(form_open(form, &err), DP_EXISTS); /* nothing there: nothing is made */
    assert_int_equal(names_in(form->directory), names);
    guard = (struct guard){.put = is};
    assert_int_equal(form_open(form, &err), DP_OK);
    form_close(form, true);
    guard = (struct guard){.admit_status = DP_EXISTS};
    assert_int_equal(form_open(form, &err), DP_EXISTS);
    assert_string_equal(err.text, "not admitted");
    assert_int_equal(guard.enters, 0);
    assert_int_equal(state_of(form->directory, &found), DP_STORE_VIEW_CLEAN);
    assert_same(found, (struct dp_store_id){11, 22, 33, 33, 0, 0});
    /* Refused later, it has drawn another opening, and is as clean as it was. */
    guard = (struct guard){.enter_status = DP_EXISTS, .put = {.id = 11, .opening = 66, .before = 33}};
    assert_int_equal(form_open(form, &err), DP_EXISTS);
    assert_int_equal(state_of(form->directory, &found), DP_STORE_VIEW_CLEAN);
    assert_same(found, guard.put);
    form_free(form);
}

static void is_read_without_a_change(void **state)
{
    struct form *form = form_new(true);
    struct dp_store_id id = {0}, read = {0};
    struct guard guard = {0};
    const struct dp_store_gate gate = {.admit = admit, .entered = entered, .context = &guard};
    struct dp_error err = {0};
    form->options.id = &id;
    assert_int_equal(form_open(form, &err), DP_OK);
    form_close(form, true);
    form->options.id = &read;
    form->options.gate = &gate;
    form->options.read_only = true;
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_same(read, id);
    assert_same(guard.found, id);
    assert_int_equal(guard.admits, 1);
    assert_int_equal(guard.enters, 0);
    form_close(form, false);
    guard.admit_status = DP_EXISTS;
    assert_int_equal(form_open(form, &err), DP_EXISTS);
    form_free(form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_drawn_once),
        cmocka_unit_test(is_clean_until_it_is_registered),
        cmocka_unit_test(stays),
        cmocka_unit_test(refused_changes_nothing),
        cmocka_unit_test(is_read_without_a_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
