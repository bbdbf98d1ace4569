/* The type of the setting that says where the broker is. */
#include "events/broker.h"
#include "settings/table.h"

#define URL_MAX 2048

static enum err parse_amqp_url(const struct setting *row, struct str text, struct arena *arena, void *field,
                               struct str *wrong)
{
    (void)row;
    (void)arena;
    (void)wrong;
    if (text.len > URL_MAX || broker_check_url(text.at, NULL))
        return ERR_INPUT;
    *(const char **)field = text.at;
    return OK;
}

static void expects_amqp_url(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addz(out,
             "a URL such as amqp://user:password@host:5672/vhost or amqps://host?cacertfile=FILE (in user, password "
             "and vhost, / is written %2F and @ %40)");
}

const struct setting_type setting_amqp_url = {parse_amqp_url, expects_amqp_url, setting_show_url};
