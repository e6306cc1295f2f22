/* Locks of native code, each taken around a call of the caller's function. */
#include <pthread.h>
#include <unistd.h>

typedef void (*function)(void);

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t twice_lock = PTHREAD_MUTEX_INITIALIZER, news_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shelf = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static volatile int at_the_gate;

void table(function f) { pthread_mutex_lock(&table_lock); f(); pthread_mutex_unlock(&table_lock); }
void twice(void) { pthread_mutex_lock(&twice_lock); pthread_mutex_lock(&twice_lock); }
void write_shelf(function f) { pthread_rwlock_wrlock(&shelf); f(); pthread_rwlock_unlock(&shelf); }
void read_shelf(void) { pthread_rwlock_rdlock(&shelf); pthread_rwlock_unlock(&shelf); }
void wait_for_news(void) { pthread_mutex_lock(&news_lock); pthread_cond_wait(&news, &news_lock); }

static void *rest(void *unused) { for (;;) pause(); return unused; }
void join_resting(void) { pthread_t t; pthread_create(&t, 0, rest, 0); pthread_join(t, 0); }

/* Whoever passes the gate with the GIL in its hands meets whoever is inside and wants the GIL. */
void pass_gate(function f) { pthread_mutex_lock(&gate); f(); pthread_mutex_unlock(&gate); }
void arrive(void) { at_the_gate = 1; pthread_mutex_lock(&gate); pthread_mutex_unlock(&gate); }
void until_somebody_arrives(void) { while (!at_the_gate) usleep(1000); usleep(20000); }
