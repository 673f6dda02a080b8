// Package idemprom measures package idem for Prometheus: the outcomes and durations
// of deliveries and attempts, and the waiting events.
//
//	collector := idemprom.NewCollector()
//	collector.Instrument(inbox) // before the first event
//	collector.WatchHealth(h.Report)          // what health.New returned
//	prometheus.MustRegister(collector)
//	http.Handle("GET /metrics", promhttp.Handler()) // not at an address that strangers reach
//
// # Metrics
//
// The names are stable.
//
//	name                               type       labels                 what it measures
//	webhook_deliveries_total           counter    source, type, outcome  deliveries, by what became of them
//	webhook_delivery_duration_seconds  histogram  source, type           from the first byte of a delivery to its answer
//	webhook_attempts_total             counter    source, type, outcome  attempts of an inbox's workers, and of replays
//	webhook_attempt_duration_seconds   histogram  source, type           from the start of an attempt to its end
//	webhook_lag_seconds                histogram  source, type           from the provider's time of an event to the commit of its work
//	webhook_relay_lag_seconds          histogram  source                 from a relay's publishing of an event to its arrival at a consumer
//	webhook_refused_total              counter    source, reason         deliveries that are not genuine
//	webhook_conflicts_total            counter    source                 deliveries with the id of an event that has another body
//	webhook_backlog_events             gauge      source, state          events that are pending, unhandled or parked
//	webhook_backlog_oldest_seconds     gauge      source, state          time since the oldest of them arrived; 0 if there is none
//	webhook_blocked_entities           gauge      source                 entities whose events wait for an earlier one
//	webhook_backlog_up                 gauge      source                 1 if the three above could be read, else 0, and they are absent
//	webhook_queue_penalized            gauge      source, queue, name    failed deliveries that the provider counts against its queue
//	webhook_queue_interrupted          gauge      source, queue, name    1 if the provider has stopped its queue, else 0
//	webhook_queue_deletion_seconds     gauge      source, queue, name    time until the provider deletes the first of the events that wait; absent if unknown
//	webhook_queue_up                   gauge      source                 1 if the three above could be read, else 0, and they are absent
//	webhook_check_found                gauge      source, check          what a check counts: charges that match nothing of the application's, for example; needs WatchHealth
//	webhook_healthy                    gauge      source, check          1 if a check of package health passes, else 0; needs WatchHealth
//
// Counters that alerts are about are 0 from the start, for each type that has a handler.
// Outcomes are those of [idem.Outcome]; duplicates, for example, are deliveries with
// the outcome duplicate. The type is [idem.Observation].Label, so that strangers, which
// can invent types, cannot add series.
//
// The gauges are read from the database at most every 15 seconds, however often the program is scraped. A scrape
// waits for them for 2 seconds at most. Every process with a collector reports the same backlog: take the maximum
// over instances, not the sum.
//
// # Dashboard and alerts
//
// This folder also has dashboard.json, for Grafana, and alerts/alerts.yml, for
// Prometheus. Each alert links to a paragraph with the remedy:
// https://github.com/paghooks/paghooks/blob/main/docs/alerts.md.
package idemprom
