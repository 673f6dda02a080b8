package idemsqs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Check asks SQS whether a message that it has confirmed can be lost. It returns an error
// that names each thing that would lose messages and the change that prevents it, or that SQS did not
// tell. It changes nothing. Call it once at the start, and log the error, or stop.
//
// It names a queue that does not exist, one that keeps messages for less than 4 days, in
// which Postgres may be unavailable, and one that moves a message to a dead letter queue
// after fewer than 100 deliveries. The client needs the right sqs:GetQueueAttributes.
func (p *Publisher) Check(ctx context.Context) error {
	out, err := p.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &p.url,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameMessageRetentionPeriod, types.QueueAttributeNameRedrivePolicy},
	})
	if err != nil {
		return fmt.Errorf("idemsqs: asking for the attributes of queue %s: %w", p.url, explain(err))
	}
	return errors.Join(
		p.checkRetention(out.Attributes[string(types.QueueAttributeNameMessageRetentionPeriod)]),
		p.checkRedrive(out.Attributes[string(types.QueueAttributeNameRedrivePolicy)]),
	)
}

// longOutage is the shortest time for which a queue should keep messages: Postgres may be
// unavailable for a long weekend. It is SQS's default.
const longOutage = 4 * 24 * time.Hour

func (p *Publisher) checkRetention(attribute string) error {
	seconds, err := strconv.Atoi(attribute)
	if err != nil {
		return fmt.Errorf("idemsqs: SQS does not tell the MessageRetentionPeriod of queue %s: %w", p.url, err)
	}
	if kept := time.Duration(seconds) * time.Second; kept < longOutage {
		return fmt.Errorf("idemsqs: queue %s deletes messages after %s, consumed or not: set its MessageRetentionPeriod to how long Postgres may be unavailable, which is 4 days (%d) at least", p.url, kept, int(longOutage.Seconds()))
	}
	return nil
}

// enoughReceives is the number of deliveries that suffice for a message while its consumers are killed.
const enoughReceives = 100

func (p *Publisher) checkRedrive(attribute string) error {
	if attribute == "" {
		return nil
	}
	var policy struct {
		MaxReceiveCount json.Number `json:"maxReceiveCount"` // SQS takes it as a string, too
	}
	err := json.Unmarshal([]byte(attribute), &policy)
	receives, numberErr := cmp.Or(policy.MaxReceiveCount, "10").Int64() // the default
	if err = errors.Join(err, numberErr); err != nil {
		return fmt.Errorf("idemsqs: the RedrivePolicy of queue %s cannot be read: %w", p.url, err)
	}
	if receives < enoughReceives {
		return fmt.Errorf("idemsqs: queue %s moves messages to a dead letter queue after %d deliveries, also because consumers were restarted: remove its RedrivePolicy, or set its maxReceiveCount to %d or more, and have an alarm on the dead letter queue", p.url, receives, enoughReceives)
	}
	return nil
}
