#include "text/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "text/format.h"
#include "text/html.h"

#define TEMPLATE_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define DEPTH_MAX 16 /* of partials, and of {{#each}} */

enum kind {
    NODE_TEXT,
    NODE_VALUE,
    NODE_SENTENCE,
    NODE_WORD,
    NODE_IF,
    NODE_IS,
    NODE_EACH,
    NODE_TIME,
    NODE_MOMENT,
    NODE_DATE,
    NODE_NUMBER,
    NODE_MASK,
    NODE_QUERY,
    NODE_ASSET,
    NODE_RAW,
};

struct node {
    enum kind kind;
    struct str text;   /* of NODE_TEXT; the first argument of others, with a NUL behind */
    struct str second; /* the second argument */
    enum text id, plural;
    bool has_plural;
    struct node *inside, *otherwise; /* of a block */
    struct node *next;
};

struct template
{
    struct arena *arena;
    struct node *first;
};

/* --- parsing --- */

struct parse {
    struct template *into;
    const struct template_source *source;
    const char *name;
    struct str rest, whole;
    struct why *why;
    int depth;
};

static enum err parse_nodes(struct parse *p, const char *until, struct node **ret, bool *ret_else);

static enum err fail(const struct parse *p, const char *what, struct str about)
{
    int line = 1;
    for (const char *at = p->whole.at; at < p->rest.at; at++)
        line += *at == '\n';
    return why_set(p->why, ERR_INPUT, "template %s, line %d: %s `%.*s`", p->name, line, what, STR_ARGS(about));
}

static struct node *node_new(struct parse *p, enum kind kind)
{
    struct node *node = arena_take(p->into->arena, sizeof *node);
    if (node)
        node->kind = kind;
    return node;
}

static const struct {
    const char *word;
    enum kind kind;
} actions[] = {{"t", NODE_SENTENCE},   {"word", NODE_WORD}, {"#if", NODE_IF},      {"#is", NODE_IS},
               {"#each", NODE_EACH},   {"time", NODE_TIME}, {"date", NODE_DATE},   {"number", NODE_NUMBER},
               {"mask", NODE_MASK},    {"raw", NODE_RAW},   {"query", NODE_QUERY}, {"asset", NODE_ASSET},
               {"moment", NODE_MOMENT}};

/* A sentence, or its two forms by number. */
static enum err find_sentence(struct parse *p, struct node *node)
{
    if (!sentence_find(node->text, &node->id))
        return OK;
    struct str one = arena_printf(p->into->arena, "%s.one", node->text.at);
    struct str other = arena_printf(p->into->arena, "%s.other", node->text.at);
    if (!one.at || !other.at)
        return ERR_MEMORY;
    if (!node->second.at || sentence_find(one, &node->id) || sentence_find(other, &node->plural))
        return fail(p, "there is no sentence", node->text);
    node->has_plural = true;
    return OK;
}

static enum err parse_block(struct parse *p, struct node *node)
{
    bool has_else = false;
    const char *end = node->kind == NODE_IF ? "/if" : node->kind == NODE_IS ? "/is" : "/each";
    enum err e = parse_nodes(p, end, &node->inside, &has_else);
    return e || !has_else ? e : parse_nodes(p, end, &node->otherwise, NULL);
}

static enum err parse_partial(struct parse *p, struct str name, struct node ***tail)
{
    struct parse inner = {.into = p->into, .source = p->source, .why = p->why, .depth = p->depth + 1};
    struct str copy = arena_copy(p->into->arena, str_trim(name));
    if (!copy.at)
        return ERR_MEMORY;
    inner.name = copy.at;
    inner.whole = inner.rest = p->source->find(copy.at, p->source->context);
    if (!inner.whole.at || inner.depth > DEPTH_MAX)
        return fail(p, "there is no template", copy);
    enum err e = parse_nodes(&inner, NULL, *tail, NULL);
    while (!e && **tail)
        *tail = &(**tail)->next;
    return e;
}

static enum err parse_tag(struct parse *p, struct str tag, struct node *node)
{
    struct str word, first, second = {NULL, 0}, whole = tag;
    node->kind = NODE_VALUE;
    if (!str_split(&tag, ' ', &word))
        return fail(p, "empty tag", whole);
    first = word;
    for (size_t i = 0; tag.at && i < COUNT_OF(actions); i++)
        if (str_eq(word, str_of(actions[i].word))) {
            node->kind = actions[i].kind;
            str_split(&tag, ' ', &first);
            second = tag;
        }
    if (node->kind == NODE_VALUE && (tag.at || word.len == 0 || strchr("#/", *word.at)))
        return fail(p, "unknown tag", whole);
    node->text = arena_copy(p->into->arena, str_trim(first));
    if (second.at)
        node->second = arena_copy(p->into->arena, str_trim(second));
    if (!node->text.at || (second.at && !node->second.at))
        return ERR_MEMORY;
    if ((node->kind == NODE_IS || node->kind == NODE_WORD) && !second.at)
        return fail(p, "two words are needed after", word);
    if (node->kind == NODE_SENTENCE)
        return find_sentence(p, node);
    return node->kind == NODE_IF || node->kind == NODE_IS || node->kind == NODE_EACH ? parse_block(p, node) : OK;
}

/* Nodes up to the tag `until`, or to the end of the text when it is NULL. */
static enum err parse_nodes(struct parse *p, const char *until, struct node **ret, bool *ret_else)
{
    struct node **tail = ret;
    *tail = NULL;
    for (;;) {
        const char *open = p->rest.len ? memmem(p->rest.at, p->rest.len, "{{", 2) : NULL;
        size_t plain = open ? (size_t)(open - p->rest.at) : p->rest.len;
        if (plain) {
            struct node *node = node_new(p, NODE_TEXT);
            if (!node)
                return ERR_MEMORY;
            node->text = (struct str){p->rest.at, plain};
            *tail = node;
            tail = &node->next;
        }
        if (!open) {
            p->rest = (struct str){p->rest.at + plain, 0};
            return until ? fail(p, "the end is missing:", str_of(until)) : OK;
        }
        p->rest = (struct str){open, p->rest.len - plain};
        const char *close = memmem(open, p->rest.len, "}}", 2);
        if (!close)
            return fail(p, "a tag is not closed", STR("{{"));
        struct str tag = str_trim((struct str){open + 2, (size_t)(close - open) - 2});
        p->rest = (struct str){close + 2, p->rest.len - (size_t)(close - open) - 2};
        if (until && str_eq(tag, str_of(until)))
            return OK;
        if (until && ret_else && str_eq(tag, STR("#else"))) {
            *ret_else = true;
            return OK;
        }
        enum err e;
        if (tag.len && *tag.at == '>') {
            e = parse_partial(p, (struct str){tag.at + 1, tag.len - 1}, &tail);
        } else {
            struct node *node = node_new(p, NODE_VALUE);
            e = node ? parse_tag(p, tag, node) : ERR_MEMORY;
            if (!e) {
                *tail = node;
                tail = &node->next;
            }
        }
        if (e)
            return e;
    }
}

enum err template_parse(const char *name, const struct template_source *source, struct template **ret, struct why *why)
{
    struct template *t = calloc(1, sizeof *t);
    if (!t || !(t->arena = arena_new(4096, TEMPLATE_BYTES_MAX))) {
        free(t);
        return why_set(why, ERR_MEMORY, "out of memory");
    }
    struct parse p = {.into = t, .source = source, .name = name, .why = why};
    p.whole = p.rest = source->find(name, source->context);
    enum err e = p.whole.at ? parse_nodes(&p, NULL, &t->first, NULL)
                            : why_set(why, ERR_INPUT, "there is no template called %s", name);
    if (e)
        template_free(t);
    else
        *ret = t;
    return e;
}

void template_free(struct template *t)
{
    if (t)
        arena_free(t->arena);
    free(t);
}

/* --- filling --- */

struct filling {
    const struct reader *reader;
    struct buf *out;
    const json_t *scopes[DEPTH_MAX + 1]; /* the values, then the item of each {{#each}} */
    size_t depth;
};

static const json_t *member(const json_t *from, struct str path)
{
    struct str part;
    while (from && str_split(&path, '.', &part))
        from = json_object_getn(from, part.at, part.len);
    return from;
}

static const json_t *look_up(const struct filling *f, struct str path)
{
    if (str_eq(path, STR(".")))
        return f->scopes[f->depth];
    for (size_t i = f->depth + 1; i-- > 0;) {
        const json_t *found = member(f->scopes[i], path);
        if (found)
            return found;
    }
    return NULL;
}

/* Text, a number or a truth value as text; absent for null and the rest. */
static struct str text_of(const json_t *value, char number[32])
{
    if (json_is_string(value))
        return (struct str){json_string_value(value), json_string_length(value)};
    if (json_is_integer(value))
        snprintf(number, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(number, 32, "%g", json_real_value(value));
    else if (json_is_boolean(value))
        snprintf(number, 32, "%s", json_is_true(value) ? "true" : "false");
    else
        return (struct str){NULL, 0};
    return str_of(number);
}

static bool is_true(const json_t *value)
{
    switch (value ? json_typeof(value) : JSON_NULL) {
    case JSON_NULL:
    case JSON_FALSE:
        return false;
    case JSON_STRING:
        return json_string_length(value) > 0;
    case JSON_INTEGER:
        return json_integer_value(value) != 0;
    case JSON_ARRAY:
        return json_array_size(value) > 0;
    case JSON_OBJECT:
        return json_object_size(value) > 0;
    default:
        return true;
    }
}

static int64_t count_of(const json_t *value)
{
    return json_is_array(value) ? (int64_t)json_array_size(value) : json_integer_value(value);
}

/* "mask email" → "email" */
static bool is_masked(struct str *name)
{
    if (!str_starts(*name, STR("mask ")))
        return false;
    *name = (struct str){name->at + 5, name->len - 5};
    return true;
}

/* Numbers above 999 in a sentence are grouped as the language does. */
static bool add_placeholder(struct buf *out, struct str name, void *context)
{
    const struct filling *f = context;
    char number[32];
    bool masked = is_masked(&name);
    const json_t *value = look_up(f, name);
    if (!value)
        return false;
    if (masked)
        format_masked(out, text_of(value, number));
    else if (json_is_integer(value))
        format_number(out, f->reader->language, json_integer_value(value));
    else
        html_add_text(out, text_of(value, number));
    return true;
}

static bool add_plain_placeholder(struct buf *out, struct str name, void *context)
{
    const struct filling *f = context;
    char number[32];
    const json_t *value = look_up(f, name);
    if (!value)
        return false;
    if (json_is_integer(value))
        format_number(out, f->reader->language, json_integer_value(value));
    else
        buf_add(out, text_of(value, number));
    return true;
}

static size_t to_mark(struct str text)
{
    size_t at = 0;
    while (at < text.len && text.at[at] != '{' && !(text.at[at] == '*' && at + 1 < text.len && text.at[at + 1] == '*'))
        at++;
    return at;
}

/* Escaped, with **bold** as <strong> and placeholders filled. Marks in a value are none: it is added as it is. */
static void add_sentence(struct filling *f, enum text id)
{
    struct str rest = sentence(f->reader->sentences, f->reader->language, id);
    bool bold = false;
    while (rest.len) {
        size_t plain = to_mark(rest), mark = 0;
        html_add_text(f->out, (struct str){rest.at, plain});
        rest = (struct str){rest.at + plain, rest.len - plain};
        if (rest.len && *rest.at == '*') {
            buf_addz(f->out, bold ? "</strong>" : "<strong>");
            bold = !bold;
            mark = 2;
        } else if (rest.len) {
            const char *close = memchr(rest.at, '}', rest.len);
            mark = close ? (size_t)(close - rest.at) + 1 : 1;
            if (!close || !add_placeholder(f->out, (struct str){rest.at + 1, mark - 2}, f))
                html_add_text(f->out, (struct str){rest.at, mark});
        }
        rest = (struct str){rest.at + mark, rest.len - mark};
    }
    if (bold)
        buf_addz(f->out, "</strong>");
}

static void add_word(struct filling *f, const struct node *node)
{
    char number[32], key[128];
    enum text id;
    struct str value = text_of(look_up(f, node->second), number);
    int len = snprintf(key, sizeof key, "%s.%.*s", node->text.at, STR_ARGS(value.at ? value : STR("other")));
    if (len < 0 || (size_t)len >= sizeof key || sentence_find(str_of(key), &id)) {
        snprintf(key, sizeof key, "%s.other", node->text.at);
        if (sentence_find(str_of(key), &id))
            return;
    }
    add_sentence(f, id);
}

static void fill(struct filling *f, const struct node *node);

static void fill_each(struct filling *f, const struct node *node)
{
    const json_t *items = look_up(f, node->text);
    if (!is_true(items) || f->depth == DEPTH_MAX) {
        fill(f, node->otherwise);
        return;
    }
    f->depth++;
    for (size_t i = 0; i < json_array_size(items); i++) {
        f->scopes[f->depth] = json_array_get(items, i);
        fill(f, node->inside);
    }
    f->depth--;
}

static void fill_leaf(struct filling *f, const struct node *node)
{
    char number[32];
    const json_t *value = node->kind == NODE_ASSET ? NULL : look_up(f, node->text);
    struct str text = text_of(value, number);
    enum language language = f->reader->language;
    switch (node->kind) {
    case NODE_VALUE:
        html_add_text(f->out, text);
        return;
    case NODE_RAW:
        buf_add(f->out, text.at ? text : STR(""));
        return;
    case NODE_TIME:
    case NODE_MOMENT:
    case NODE_DATE:
        format_time(f->out, f->reader->sentences, language, text,
                    node->kind == NODE_DATE     ? FORMAT_DATE
                    : node->kind == NODE_MOMENT ? FORMAT_SECONDS
                                                : FORMAT_CLOCK);
        return;
    case NODE_NUMBER:
        if (json_is_integer(value))
            format_number(f->out, language, json_integer_value(value));
        else
            html_add_text(f->out, text);
        return;
    case NODE_MASK:
        format_masked(f->out, text);
        return;
    case NODE_QUERY:
        format_query(f->out, text);
        return;
    default:
        if (f->reader->asset && f->reader->asset(node->text.at))
            html_add_text(f->out, str_of(f->reader->asset(node->text.at)));
        return;
    }
}

static bool condition(const struct filling *f, const struct node *node)
{
    char number[32];
    const json_t *value = look_up(f, node->text);
    return node->kind == NODE_IF ? is_true(value) : str_eq(text_of(value, number), node->second);
}

static void fill(struct filling *f, const struct node *node)
{
    for (; node; node = node->next) {
        switch (node->kind) {
        case NODE_TEXT:
            buf_add(f->out, node->text);
            break;
        case NODE_SENTENCE:
            add_sentence(f, node->has_plural && count_of(look_up(f, node->second)) != 1 ? node->plural : node->id);
            break;
        case NODE_WORD:
            add_word(f, node);
            break;
        case NODE_IF:
        case NODE_IS:
            fill(f, condition(f, node) ? node->inside : node->otherwise);
            break;
        case NODE_EACH:
            fill_each(f, node);
            break;
        default:
            fill_leaf(f, node);
        }
    }
}

void template_fill(const struct template *t, const struct reader *reader, const json_t *values, struct buf *out)
{
    struct filling f = {.reader = reader, .out = out, .scopes = {values}};
    fill(&f, t->first);
}

void template_fill_sentence(const struct reader *reader, enum text id, const json_t *values, struct buf *out)
{
    struct filling f = {.reader = reader, .out = out, .scopes = {values}};
    add_sentence(&f, id);
}

void text_fill_sentence(const struct reader *reader, enum text id, const json_t *values, struct buf *out)
{
    struct filling f = {.reader = reader, .out = out, .scopes = {values}};
    AUTO(buf) struct buf plain = buf_new((size_t)64 * 1024);
    struct str text = sentence(reader->sentences, reader->language, id);
    for (const char *mark; (mark = memmem(text.at, text.len, "**", 2));) {
        buf_add(&plain, (struct str){text.at, (size_t)(mark - text.at)});
        text = (struct str){mark + 2, text.len - (size_t)(mark - text.at) - 2};
    }
    buf_add(&plain, text);
    if (buf_str(&plain).at)
        sentence_fill(out, buf_str(&plain), add_plain_placeholder, &f);
}

void text_fill_time(const struct reader *reader, struct str rfc3339, struct buf *out)
{
    format_plain_time(out, reader->sentences, reader->language, rfc3339);
}
