package readme

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
)

var stateInPicture = regexp.MustCompile(`<text [^>]*class="state"[^>]*>([^<]*)</text>`)

// The picture of an inbox has each state but retrying, which is a Processor's.
func TestThePictureHasTheStatesOfAnEvent(t *testing.T) {
	t.Parallel()
	want := []idem.State{idem.StateDiscarded, idem.StateDone, idem.StateParked, idem.StatePending, idem.StateUnhandled}
	var got []idem.State
	for _, found := range stateInPicture.FindAllStringSubmatch(read(t, "docs/delivery.svg"), -1) {
		got = append(got, idem.State(found[1]))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the states in docs/delivery.svg differ (-want +got):\n%s", diff)
	}
}
