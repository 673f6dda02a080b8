//go:build long

package idemcmd

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/command"
)

// Ten thousand events are replayed by a process that gets Ctrl-C, one that is
// killed, and one that ends.
func TestReplayOfTenThousandEventsSurvivesCtrlCAndKillWithNothingDoneTwice(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const n = 10_000
	s.exec(fmt.Sprintf(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//evt_' || n, 'paid', 'pay_' || n, 'parked', now() - interval '1 day' + n * interval '1 second' from generate_series(1, %d) n`, n))
	s.exec(`insert into idem_payloads (event, source, received_at, body)
		select event, 'notes', received_at, convert_to('{"id":"' || substr(event, 8) || '","type":"paid"}', 'UTF8') from idem_events`)

	interrupted := s.startReplay(2000)
	interrupted.awaitLine("in the handler of evt_2000")
	interrupted.signal(os.Interrupt)
	interrupted.awaitLine("signaled")
	interrupted.release()
	status, complaints := interrupted.wait()
	done, err := strconv.Atoi(s.text(`select count(*) from effects`))
	if err != nil || done < 2000 || done >= n {
		t.Fatalf("%d events have an effect, %v: want the one that was being processed, and not all", done, err)
	}
	says := fmt.Sprintf("idem: %s of 10,000 events were replayed (%s done, 0 failed, 0 without a handler), the rest is as it was: run it again to go on\n", command.Number(int64(done)), command.Number(int64(done)))
	if status != command.Interrupted || !strings.Contains(complaints, says) || !strings.Contains(complaints, "interrupt signal received") {
		t.Errorf("after Ctrl-C: exit status %d, it says %q, want %q", status, complaints, says)
	}

	killed := s.startReplay(6000)
	killed.awaitLine("in the handler of evt_6000")
	killed.signal(os.Kill)
	killed.wait()
	s.wantText(`select count(*) from effects`, "5999")
	s.wantText(`select state from idem_events where event = 'notes//evt_6000'`, "parked")

	s.exec(`update idem_workers set seen_at = seen_at - interval '13 seconds'`) // by which it is known to be dead
	status, out, complaints := s.idem("replay", "-yes", "-as", "ana")
	if status != command.Done || out != "4,001 events of notes: replayed: 4,001 done, 0 failed, 0 without a handler\n" {
		t.Errorf("after kill -9: exit status %d, %q, %q", status, out, complaints)
	}
	s.wantText(`select count(*) || ' ' || count(distinct event) from effects`, "10000 10000")
	s.wantText(`select string_agg(case when ended_at is null then 'running' else left(result, 4) end, ' ' order by id) from idem_audit`, strconv.Itoa(done)+" running 4001")
}
