/* Requests decisions from the limits as HTTP requests do, without HTTP: so many callers, each requesting the next
 * decision after the last, on one thread for each instance. Instances share only the database. */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "limits/admission.h"

#define INSTANCES_MAX 4
#define QUEUE_ROOM 4096
#define START_NS (10 * NS_PER_S)

struct caller {
    struct ticket ticket;
    struct instance *instance;
    struct caller *next;
};

struct tally {
    uint64_t admitted, refused, faults;
};

struct instance {
    const struct plan *plan;
    struct pool *pool;
    struct admission *admission;
    pthread_t thread;
    uint64_t draw;
    int64_t callers;
    struct tally tally;

    pthread_mutex_t lock; /* for the list of callers with a decision */
    pthread_cond_t has_decided;
    struct caller *first, **last;
};

struct plan {
    const char *url;
    struct tier_table tiers;
    int64_t callers, people, connections, instances, warm_ms, run_ms;
    bool once;
    int64_t measured_from_ns, stop_ns;
};

static noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "limits_driver: %s: %s\n", what, why);
    exit(1);
}

static void decided(struct ticket *ticket)
{
    struct caller *c = OWNER_OF(ticket, struct caller, ticket);
    struct instance *in = c->instance;
    pthread_mutex_lock(&in->lock);
    c->next = NULL;
    *in->last = c;
    in->last = &c->next;
    pthread_cond_signal(&in->has_decided);
    pthread_mutex_unlock(&in->lock);
}

static struct caller *await_decided(struct instance *in)
{
    pthread_mutex_lock(&in->lock);
    while (!in->first)
        pthread_cond_wait(&in->has_decided, &in->lock);
    struct caller *c = in->first;
    in->first = c->next;
    if (!in->first)
        in->last = &in->first;
    pthread_mutex_unlock(&in->lock);
    return c;
}

static uint64_t draw_person(struct instance *in)
{
    in->draw ^= in->draw << 13;
    in->draw ^= in->draw >> 7;
    in->draw ^= in->draw << 17;
    return in->draw % (uint64_t)in->plan->people;
}

/* Hashes the addresses as a request does. */
static void ask(struct caller *c)
{
    static const struct digest key = {{1}};
    struct instance *in = c->instance;
    uint64_t person = draw_person(in);
    struct ip client = {{[10] = 0xff, 0xff, 10, (uint8_t)(person >> 16), (uint8_t)(person >> 8), (uint8_t)person}};
    char email[48];
    int len = snprintf(email, sizeof email, "person%06" PRIu64 "@example.com", person);
    c->ticket = (struct ticket){.decided = decided};
    ticket_count_in(in->admission, &c->ticket, counted_globally());
    ticket_count_in(in->admission, &c->ticket, counted_by_ip(TIER_IP, &key, &client));
    ticket_count_in(in->admission, &c->ticket, counted_by_email(TIER_EMAIL, &key, (struct str){email, (size_t)len}));
    admission_ask(in->admission, &c->ticket);
}

static void count(struct tally *t, enum admission_verdict verdict)
{
    t->admitted += verdict == ADMISSION_GRANTED;
    t->refused += verdict == ADMISSION_REFUSED;
    t->faults += verdict == ADMISSION_FAILED;
}

static void *keep_asking(void *context)
{
    struct instance *in = context;
    const struct plan *p = in->plan;
    struct caller *callers = calloc((size_t)in->callers, sizeof *callers);
    if (!callers)
        fail("cannot begin", "no memory");
    for (int64_t i = 0; i < in->callers; i++) {
        callers[i].instance = in;
        ask(&callers[i]);
    }
    for (int64_t asking = in->callers; asking > 0;) {
        struct caller *c = await_decided(in);
        int64_t now = clock_ns();
        if (p->once || (now >= p->measured_from_ns && now < p->stop_ns))
            count(&in->tally, c->ticket.verdict);
        if (p->once || now >= p->stop_ns)
            asking--;
        else
            ask(c);
    }
    free(callers);
    return NULL;
}

static void await_database(const struct instance *in)
{
    int64_t until_ns = clock_ns() + START_NS;
    while (pool_read_state(in->pool).connected < in->plan->connections || !admission_is_listening(in->admission)) {
        if (clock_ns() > until_ns)
            fail("cannot begin", "no database");
        nanosleep(&(struct timespec){.tv_nsec = 5 * NS_PER_MS}, NULL);
    }
}

static void instance_open(struct instance *in, const struct plan *p, int64_t number)
{
    struct why why = {""};
    struct pool_config pool = {.url = p->url, .connections = (int)p->connections, .queue_capacity = QUEUE_ROOM};
    in->plan = p;
    in->draw = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(number + 1);
    in->callers = p->callers / p->instances + (number < p->callers % p->instances);
    in->last = &in->first;
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->has_decided, NULL);
    in->pool = pool_start(&pool, &why);
    in->admission = admission_new();
    if (!in->pool || !in->admission || admission_open(in->admission, p->url, in->pool, in->pool, &why))
        fail("cannot begin", why.text);
    admission_configure(in->admission, &p->tiers);
    await_database(in);
}

static void instance_close(struct instance *in)
{
    pool_stop(in->pool, clock_ns() + NS_PER_S);
    admission_free(in->admission);
    pthread_cond_destroy(&in->has_decided);
    pthread_mutex_destroy(&in->lock);
}

static noreturn void usage(void)
{
    fputs("usage: limits_driver [OPTION...] DATABASE-URL\n"
          "  --callers N        concurrent callers (1)\n"
          "  --people N         number of client and e-mail addresses (1)\n"
          "  --global, --ip, --email REQUESTS/SECONDS   the limits\n"
          "  --connections N    to the database, of each instance (16)\n"
          "  --instances N      the callers are divided among them (1)\n"
          "  --warm MS          time that is not measured (1)\n"
          "  --run MS           time that is measured (1000)\n"
          "  --once             each caller asks once, all at the same time\n"
          "Prints one JSON object.\n",
          stderr);
    exit(2);
}

static void number(const char *text, int64_t most, int64_t *into)
{
    if (str_to_i64(str_of(text), 1, most, into))
        usage();
}

static void read_limit(const char *text, struct limit *into)
{
    struct str rest = str_of(text), requests;
    if (!str_split(&rest, '/', &requests) || str_to_i64(requests, 1, INT32_MAX, &into->requests) ||
        str_to_i64(rest, 1, 86400, &into->seconds))
        usage();
}

static void read_options(struct plan *p, int argc, char **argv)
{
    static const struct option known[] = {
        {"callers", required_argument, NULL, 'c'},
        {"people", required_argument, NULL, 'p'},
        {"global", required_argument, NULL, 'g'},
        {"ip", required_argument, NULL, 'i'},
        {"email", required_argument, NULL, 'e'},
        {"connections", required_argument, NULL, 'n'},
        {"instances", required_argument, NULL, 'I'},
        {"warm", required_argument, NULL, 'w'},
        {"run", required_argument, NULL, 'r'},
        {"once", no_argument, NULL, 'o'},
        {0},
    };
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (o == 'c')
            number(optarg, 10000, &p->callers);
        else if (o == 'p')
            number(optarg, 1 << 24, &p->people);
        else if (o == 'n')
            number(optarg, 200, &p->connections);
        else if (o == 'I')
            number(optarg, INSTANCES_MAX, &p->instances);
        else if (o == 'w')
            number(optarg, 600000, &p->warm_ms);
        else if (o == 'r')
            number(optarg, 600000, &p->run_ms);
        else if (o == 'g')
            read_limit(optarg, &p->tiers.of[TIER_GLOBAL]);
        else if (o == 'i')
            read_limit(optarg, &p->tiers.of[TIER_IP]);
        else if (o == 'e')
            read_limit(optarg, &p->tiers.of[TIER_EMAIL]);
        else if (o == 'o')
            p->once = true;
        else
            usage();
    }
    if (argc - optind != 1)
        usage();
    p->url = argv[optind];
}

static struct tally run(struct plan *p)
{
    static struct instance instances[INSTANCES_MAX];
    struct tally all = {0};
    for (int64_t i = 0; i < p->instances; i++)
        instance_open(&instances[i], p, i);
    p->measured_from_ns = clock_ns() + p->warm_ms * NS_PER_MS;
    p->stop_ns = p->measured_from_ns + p->run_ms * NS_PER_MS;
    for (int64_t i = 0; i < p->instances; i++)
        if (pthread_create(&instances[i].thread, NULL, keep_asking, &instances[i]) != 0)
            fail("cannot begin", "no thread");
    for (int64_t i = 0; i < p->instances; i++) {
        pthread_join(instances[i].thread, NULL);
        all.admitted += instances[i].tally.admitted;
        all.refused += instances[i].tally.refused;
        all.faults += instances[i].tally.faults;
        instance_close(&instances[i]);
    }
    return all;
}

int main(int argc, char **argv)
{
    struct plan plan = {.callers = 1, .people = 1, .connections = 16, .instances = 1, .warm_ms = 1, .run_ms = 1000};
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* the benchmark has ended */
    log_threshold(LOG_WARN);
    read_options(&plan, argc, argv);
    struct tally t = run(&plan);
    double seconds = (double)plan.run_ms / 1000;
    printf("{\"seconds\":%.3f,\"per_second\":%.1f,\"admitted\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"faults\":%" PRIu64
           "}\n",
           seconds, (double)(t.admitted + t.refused) / seconds, t.admitted, t.refused, t.faults);
    return 0;
}
