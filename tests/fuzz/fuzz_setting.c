/* Values of settings: taken or refused with a sentence, and shown in one line that tells no secret. The input is
 * NAME=value, without the RECLAIM_. */
#include "fuzz.h"
#include "settings/table.h"

static void check_shown(const struct setting *row, struct str text)
{
    AUTO(buf) struct buf out = buf_new(65536);
    setting_show(row, text, &out);
    struct str shown = buf_str(&out);
    PROMISE(!out.failed && str_is_utf8(shown));
    for (size_t i = 0; i < shown.len; i++)
        PROMISE((unsigned char)shown.at[i] >= ' ' && shown.at[i] != 0x7f);
    if (row->type == &setting_secret && text.len >= 4)
        PROMISE(!memmem(shown.at, shown.len, text.at, text.len) || strspn(text.at, "*") == text.len);
}

static void check_refused(const struct setting *row, struct str text, struct str wrong)
{
    AUTO(buf) struct buf sentence = buf_new(65536);
    PROMISE(wrong.len <= text.len);
    row->type->expects(row, &sentence);
    PROMISE(!sentence.failed && sentence.len > 0);
    check_shown(row, wrong);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str value = {(const char *)data, strnlen((const char *)data, size)}, name;
    char full[64];
    bool from_file;
    if (!str_split(&value, '=', &name) || !value.at || name.len > 40)
        return -1; /* not worth a place in the corpus */
    snprintf(full, sizeof full, "RECLAIM_%.*s", STR_ARGS(name));
    const struct setting *row = setting_find(full, &from_file);
    if (!row)
        return -1;
    struct arena *arena = fuzz_arena();
    struct settings *s = calloc(1, sizeof *s);
    PROMISE(s);
    struct str text = arena_copy(arena, value), wrong = text;
    if (text.at) {
        enum err e = row->type->parse(row, text, arena, (char *)s + row->field, &wrong);
        PROMISE(e == OK || e == ERR_INPUT || e == ERR_MEMORY);
        if (e == ERR_INPUT)
            check_refused(row, text, wrong);
        check_shown(row, text);
    }
    free(s);
    arena_free(arena);
    return 0;
}
