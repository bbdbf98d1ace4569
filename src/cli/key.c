/* `reclaim key`: keys of customers, and keys with a scope for programs. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "credentials/access_keys.h"
#include "server/database.h"

static enum err ask_all(struct command_context *c, struct pg_call *calls, size_t count)
{
    enum err e = pg_trip(c->pg, calls, count, clock_ns() + DATABASE_DEADLINE_NS);
    return e ? why_set(&c->why, e, "the keys cannot be reached (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), calls[count - 1].sqlstate)
             : OK;
}

static enum err ask(struct command_context *c, struct pg_call *call)
{
    return ask_all(c, call, 1);
}

#define LIFE_MIN_MS 1000
#define LIFE_MAX_MS INT64_C(315360000000) /* ten years */
#define GRACE "24h"

struct key_input {
    int64_t life_ms, grace_ms; /* life -1: none given */
};

/* Makes a key, has the last of the calls store it, and prints it alone on standard output. The places of its hash and beginning
 * are `hash_at` and the one after that. */
static enum err make(struct command_context *c, struct pg_call *calls, size_t count, int hash_at, const char *missing)
{
    struct pg_call *call = &calls[count - 1];
    struct access_key key = access_key_new();
    char hash[DIGEST_HEX_LEN + 1], prefix[ACCESS_KEY_PREFIX_LEN + 1];
    access_key_hash(&c->key, str_of(key.text), hash);
    access_key_prefix(&key, prefix);
    call->args[hash_at] = pg_text(hash);
    call->args[hash_at + 1] = pg_text(prefix);
    enum err e = ask_all(c, calls, count);
    if (!e && call->rows == 0)
        e = why_set(&c->why, ERR_MISSING, "%s", missing);
    if (!e) {
        printf("%s\n", key.text);
        fprintf(stderr, "its id is %s; the key is not shown again\n", pg_get(call, 0, 0).at);
    }
    secret_wipe(&key, sizeof key);
    return e;
}

static struct pg_arg life_of(const struct key_input *in)
{
    return in->life_ms < 0 ? pg_null() : pg_i64(in->life_ms);
}

static enum err create(struct command_context *c)
{
    const char *customer = option(c, "--customer"), *name = option(c, "--name");
    struct pg_call calls[] = {
        {.ask = &access_key_make_customer, .args = {pg_text_or_null(customer)}},
        {.ask = customer ? &access_key_insert : &access_key_insert_scoped,
         .args = {pg_text(customer ? customer : option(c, "--scope")), pg_null(), pg_null(), pg_text(name ? name : ""),
                  life_of(c->input)}},
    };
    struct str missing = arena_printf(c->arena, "there is no customer %s, or it is deleted", customer ? customer : "");
    return customer ? make(c, calls, 2, 1, missing.at ? missing.at : "") : make(c, &calls[1], 1, 1, "");
}

static enum err rotate(struct command_context *c)
{
    const struct key_input *in = c->input;
    const char *key = word(c, 1);
    char hash[DIGEST_HEX_LEN + 1];
    bool by_id = str_is_uuid(str_of(key));
    access_key_hash(&c->key, str_of(key), hash);
    struct pg_call call = {.ask = &access_key_rotate,
                           .args = {by_id ? pg_text(key) : pg_null(), by_id ? pg_null() : pg_text(hash), pg_null(),
                                    pg_null(), life_of(in), pg_i64(in->grace_ms)}};
    return make(c, &call, 1, 2, "there is no such key, or it is revoked, has expired or is a deleted customer's");
}

static enum err revoke(struct command_context *c)
{
    const char *customer = option(c, "--customer"), *key = c->word_count > 1 ? word(c, 1) : NULL;
    struct pg_call call = {.ask = &access_key_revoke, .args = {pg_null(), pg_null(), pg_null()}};
    char hash[DIGEST_HEX_LEN + 1];
    if (customer)
        call.args[0] = pg_text(customer);
    if (key && str_is_uuid(str_of(key))) {
        call.args[1] = pg_text(key);
    } else if (key) {
        access_key_hash(&c->key, str_of(key), hash);
        call.args[2] = pg_text(hash);
    }
    enum err e = ask(c, &call);
    if (!e && key && call.rows == 0)
        e = why_set(&c->why, ERR_MISSING, "there is no such key%s, or it is revoked already",
                    customer ? " of this customer" : "");
    if (!e)
        printf("%d key%s revoked\n", call.rows, call.rows == 1 ? "" : "s");
    return e;
}

static const struct report_column columns[] = {{.name = "id"},         {.name = "prefix"},     {.name = "scope"},
                                               {.name = "name"},       {.name = "created_at"}, {.name = "last_used_at"},
                                               {.name = "expires_at"}, {.name = "revoked_at"}};
static const struct report_shape keys_shape = {columns, COUNT_OF(columns), true, "-", "key"};

static enum err list(struct command_context *c)
{
    struct pg_call rows = {.ask = &access_keys_list, .args = {pg_text_or_null(option(c, "--customer"))}};
    enum err e = ask(c, &rows);
    if (e)
        return e;
    AUTO(report) struct report *r = report_new(&keys_shape, c->format);
    report_rows(r, &rows);
    return report_print(r, &c->why);
}

/* What is wrong with the options of these verbs; NULL when nothing is. */
static const char *fault_of_options(const struct command_context *c, bool creates, bool rotates)
{
    const char *name = option(c, "--name"), *scope = option(c, "--scope");
    char participant[KEY_PARTICIPANT_MAX + 1];
    enum key_scope ignored;
    if (name && (!creates || !access_key_name_is_fine(str_of(name))))
        return creates ? "a name has at most 100 bytes, without control characters" : "only create takes --name";
    if (scope && !creates)
        return "only create takes --scope";
    if (scope && (key_scope_parse(str_of(scope), &ignored, participant) || ignored == SCOPE_CUSTOMER))
        return "--scope is admin, read, calls, billing or receipts:NAME";
    if (option(c, "--expires") && !creates && !rotates)
        return "only create and rotate take --expires";
    if (option(c, "--grace") && !rotates)
        return "only rotate takes --grace";
    return NULL;
}

/* What is wrong with the arguments; NULL when nothing is. */
static const char *fault_of(const struct command_context *c)
{
    const char *verb = word(c, 0), *key = c->word_count > 1 ? word(c, 1) : NULL;
    const char *customer = option(c, "--customer"), *scope = option(c, "--scope");
    bool creates = strcmp(verb, "create") == 0, revokes = strcmp(verb, "revoke") == 0;
    bool rotates = strcmp(verb, "rotate") == 0, lists = strcmp(verb, "list") == 0;
    if (!creates && !revokes && !rotates && !lists)
        return "say create, rotate, revoke or list";
    if (creates && !customer == !scope)
        return "say whose: either --customer ID or --scope SCOPE";
    if (revokes && !customer && !key)
        return "say which key, or all of --customer ID";
    if (rotates && (customer || !key))
        return "say which key, and nothing else of it: the new one is for the same";
    if (customer && !str_is_uuid(str_of(customer)))
        return "--customer wants a customer's id, a UUID";
    if (key && !revokes && !rotates)
        return "only revoke and rotate take a key";
    if (key && !str_is_uuid(str_of(key)) && !access_key_is_one(str_of(key)))
        return "revoke and rotate take a key or a key's id";
    if (c->format_given && !lists)
        return "--format is for list: table, csv or json";
    return fault_of_options(c, creates, rotates);
}

enum err key_read(struct command_context *c)
{
    const char *fault = fault_of(c), *life = option(c, "--expires"), *grace = option(c, "--grace");
    struct key_input *in = arena_take(c->arena, sizeof *in);
    if (!in)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    in->life_ms = -1;
    if (!fault && life &&
        (str_to_duration_ms(str_of(life), &in->life_ms) || in->life_ms < LIFE_MIN_MS || in->life_ms > LIFE_MAX_MS))
        fault = "--expires is a duration from 1s to 3650d, such as 90d";
    if (!fault && (str_to_duration_ms(str_of(grace ? grace : GRACE), &in->grace_ms) || in->grace_ms > LIFE_MAX_MS))
        fault = "--grace is a duration up to 3650d, such as 24h";
    c->input = in;
    return fault ? why_set(&c->why, ERR_INPUT, "%s (see reclaim key --help)", fault) : OK;
}

enum err key_command(struct command_context *c)
{
    const char *verb = word(c, 0);
    return strcmp(verb, "create") == 0   ? create(c)
           : strcmp(verb, "rotate") == 0 ? rotate(c)
           : strcmp(verb, "revoke") == 0 ? revoke(c)
                                         : list(c);
}
