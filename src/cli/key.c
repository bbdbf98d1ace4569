#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "credentials/access_keys.h"

static enum err ask(struct command_context *c, struct pg_call *call)
{
    enum err e = command_ask(c, call);
    return e ? why_set(&c->why, e, "the keys cannot be reached (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), call->sqlstate)
             : OK;
}

static enum err create(struct command_context *c)
{
    const char *customer = option(c, "--customer"), *name = option(c, "--name");
    struct access_key key = access_key_new();
    char hash[DIGEST_HEX_LEN + 1], prefix[ACCESS_KEY_PREFIX_LEN + 1];
    access_key_hash(&c->key, str_of(key.text), hash);
    access_key_prefix(&key, prefix);
    struct pg_call call = {.ask = &access_key_insert,
                           .args = {pg_text(customer), pg_text(hash), pg_text(prefix), pg_text(name ? name : "")}};
    enum err e = ask(c, &call);
    if (!e && call.rows == 0)
        e = why_set(&c->why, ERR_MISSING, "there is no customer %s, or it is deleted", customer);
    if (!e) {
        printf("%s\n", key.text);
        fprintf(stderr, "its id is %s; the key is not shown again\n", pg_get(&call, 0, 0).at);
    }
    secret_wipe(&key, sizeof key);
    return e;
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

static const struct report_column columns[] = {{.name = "id"},           {.name = "prefix"},
                                               {.name = "name"},         {.name = "created_at"},
                                               {.name = "last_used_at"}, {.name = "revoked_at"}};
static const struct report_shape keys_shape = {columns, COUNT_OF(columns), true, "-", "key"};

static enum err list(struct command_context *c)
{
    struct pg_call rows = {.ask = &access_keys_list, .args = {pg_text(option(c, "--customer"))}};
    enum err e = ask(c, &rows);
    if (e)
        return e;
    AUTO(report) struct report *r = report_new(&keys_shape, c->format);
    report_rows(r, &rows);
    return report_print(r, &c->why);
}

/* What is wrong with the arguments; NULL when nothing is. */
static const char *fault_of(const struct command_context *c)
{
    const char *verb = word(c, 0), *key = c->word_count > 1 ? word(c, 1) : NULL;
    const char *customer = option(c, "--customer"), *name = option(c, "--name");
    bool creates = strcmp(verb, "create") == 0, revokes = strcmp(verb, "revoke") == 0;
    if (!creates && !revokes && strcmp(verb, "list") != 0)
        return "say create, revoke or list";
    if (!customer && !(revokes && key))
        return revokes ? "say which key, or all of --customer ID" : "say whose: --customer ID";
    if (customer && !str_is_uuid(str_of(customer)))
        return "--customer wants a customer's id, a UUID";
    if (key && !revokes)
        return "only revoke takes a key";
    if (key && !str_is_uuid(str_of(key)) && !access_key_is_one(str_of(key)))
        return "revoke takes a key or a key's id";
    if (name && (!creates || !access_key_name_is_fine(str_of(name))))
        return creates ? "a name has at most 100 bytes, without control characters" : "only create takes --name";
    if (c->format_given && (creates || revokes))
        return "--format is for list: table, csv or json";
    return NULL;
}

enum err key_read(struct command_context *c)
{
    const char *fault = fault_of(c);
    return fault ? why_set(&c->why, ERR_INPUT, "%s (see reclaim key --help)", fault) : OK;
}

enum err key_command(struct command_context *c)
{
    const char *verb = word(c, 0);
    return strcmp(verb, "create") == 0 ? create(c) : strcmp(verb, "revoke") == 0 ? revoke(c) : list(c);
}
