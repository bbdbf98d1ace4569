#include "recovery/ownership.h"

#include <string.h>

#include "pg/arrays.h"

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_QUOTED_NAME, TOKEN_TEXT, TOKEN_SIGN, TOKEN_WRONG };

struct token {
    enum token_kind kind;
    struct str text; /* without quotes */
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A quote is doubled within quotes. Backslashes would need to know how the server reads them. */
static struct token quoted(struct str *rest, char quote)
{
    for (size_t i = 1; i < rest->len; i++) {
        if (rest->at[i] == '\\' || (unsigned char)rest->at[i] < 0x20)
            break;
        if (rest->at[i] != quote)
            continue;
        if (i + 1 < rest->len && rest->at[i + 1] == quote) {
            i++;
            continue;
        }
        struct token t = {quote == '"' ? TOKEN_QUOTED_NAME : TOKEN_TEXT, {rest->at + 1, i - 1}};
        *rest = (struct str){rest->at + i + 1, rest->len - i - 1};
        return t;
    }
    return (struct token){TOKEN_WRONG, *rest};
}

static bool begins_comment(struct str s)
{
    return str_starts(s, STR("--")) || str_starts(s, STR("/*"));
}

static struct token next_token(struct str *rest)
{
    while (rest->len && (*rest->at == ' ' || *rest->at == '\t'))
        *rest = (struct str){rest->at + 1, rest->len - 1};
    if (!rest->len)
        return (struct token){TOKEN_END, *rest};
    char first = *rest->at;
    if (first == '\'' || first == '"')
        return quoted(rest, first);
    if (first == ';' || first == '$' || first == '\\' || (unsigned char)first < 0x20 || begins_comment(*rest))
        return (struct token){TOKEN_WRONG, *rest};
    size_t len = 1;
    bool word = is_letter(first), number = is_digit(first);
    while ((word || number) && len < rest->len &&
           (is_letter(rest->at[len]) || is_digit(rest->at[len]) || (number && rest->at[len] == '.')))
        len++;
    struct token t = {word ? TOKEN_NAME : TOKEN_SIGN, {rest->at, len}};
    *rest = (struct str){rest->at + len, rest->len - len};
    return t;
}

static int depth_change(const struct token *t)
{
    if (t->kind != TOKEN_SIGN)
        return 0;
    return (*t->text.at == '(' || *t->text.at == '[') - (*t->text.at == ')' || *t->text.at == ']');
}

bool ownership_split(struct str *rest, struct str *ret_part)
{
    if (!rest->at)
        return false;
    struct str at = *rest;
    int depth = 0;
    for (;;) {
        struct str before = at;
        struct token t = next_token(&at);
        bool comma = t.kind == TOKEN_SIGN && *t.text.at == ',' && depth <= 0;
        if (comma || t.kind == TOKEN_END || t.kind == TOKEN_WRONG) {
            const char *end = comma ? t.text.at : before.at + before.len;
            *ret_part = (struct str){rest->at, (size_t)(end - rest->at)};
            *rest = comma ? at : (struct str){NULL, 0};
            return true;
        }
        depth += depth_change(&t);
    }
}

/* A sub-select cannot do without one of these. */
static bool begins_subselect(struct str word)
{
    return str_eq_nocase(word, STR("select")) || str_eq_nocase(word, STR("values")) ||
           str_eq_nocase(word, STR("table"));
}

static bool is_condition(struct str text)
{
    int depth = 0;
    size_t tokens = 0;
    for (;; tokens++) {
        struct token t = next_token(&text);
        if (t.kind == TOKEN_END)
            return depth == 0 && tokens > 0;
        if (t.kind == TOKEN_WRONG || (t.kind == TOKEN_NAME && begins_subselect(t.text)))
            return false;
        depth += depth_change(&t);
        if (depth < 0)
            return false;
    }
}

static bool is_identifier(struct str s)
{
    if (s.len == 0 || s.len > 63 || is_digit(*s.at))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if ((!is_letter(s.at[i]) && !is_digit(s.at[i])) || (unsigned char)s.at[i] >= 0x80)
            return false;
    return true;
}

static enum err parse_names(struct str text, struct arena *arena, struct ownership_column *ret)
{
    const char *names[3];
    size_t count = 0;
    struct str name;
    while (str_split(&text, '.', &name)) {
        if (count == COUNT_OF(names) || !is_identifier(name))
            return ERR_INPUT;
        names[count] = arena_copy(arena, name).at;
        if (!names[count++])
            return ERR_MEMORY;
    }
    if (count < 2)
        return ERR_INPUT;
    *ret = count == 3 ? (struct ownership_column){names[0], names[1], names[2], NULL}
                      : (struct ownership_column){"public", names[0], names[1], NULL};
    return OK;
}

enum err ownership_parse(struct str part, struct arena *arena, struct ownership_column *ret)
{
    size_t len = 0;
    while (len < part.len && part.at[len] != ' ' && part.at[len] != '\t')
        len++;
    struct str rest = str_trim((struct str){part.at + len, part.len - len});
    enum err e = parse_names((struct str){part.at, len}, arena, ret);
    if (e || !rest.len)
        return e;
    struct token where = next_token(&rest);
    rest = str_trim(rest);
    if (where.kind != TOKEN_NAME || !str_eq_nocase(where.text, STR("where")) || !is_condition(rest))
        return ERR_INPUT;
    ret->condition = arena_copy(arena, rest).at;
    return ret->condition ? OK : ERR_MEMORY;
}

/* The server folds names without quotes to lower case. */
static void add_word(struct buf *out, const struct token *t)
{
    char name[64];
    if (str_copy(t->text, name, sizeof name))
        return; /* longer than any name of a column */
    if (t->kind == TOKEN_NAME)
        str_lower(name, t->text.len);
    array_add_text(out, str_of(name));
}

void ownership_words(const struct ownership_column *column, struct buf *out)
{
    struct str rest = str_of(column->condition ? column->condition : "");
    for (;;) {
        struct token t = next_token(&rest);
        if (t.kind == TOKEN_END || t.kind == TOKEN_WRONG)
            break;
        if (t.kind == TOKEN_NAME || t.kind == TOKEN_QUOTED_NAME)
            add_word(out, &t);
    }
}

static bool is_same(const struct ownership_column *a, const struct ownership_column *b)
{
    return strcmp(a->schema, b->schema) == 0 && strcmp(a->table, b->table) == 0 && strcmp(a->column, b->column) == 0;
}

void ownership_names(const struct ownership_column *columns, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (!is_same(&columns[first], &columns[i]))
            first++;
        char name[3 * 64];
        struct buf text = buf_over(name, sizeof name);
        buf_addf(&text, "%s.%s.%s", columns[i].schema, columns[i].table, columns[i].column);
        if (first == i)
            array_add_text(out, buf_str(&text));
    }
}
