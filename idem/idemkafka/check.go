package idemkafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Check asks the brokers whether a confirmed message outlives the loss of one of them.
// It returns an error that names each setting of the topic that prevents that, or that
// the brokers did not tell. It changes nothing. Call it once at the start, and log the
// error, or stop.
//
// The brokers must let the client describe the topic and its configuration.
func (p *Publisher) Check(ctx context.Context) error {
	return errors.Join(p.checkReplicas(ctx), p.checkSettings(ctx))
}

func (p *Publisher) checkReplicas(ctx context.Context) error {
	request := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &p.topic
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("idemkafka: asking for the replicas of topic %q: %w", p.topic, err)
	}
	for _, t := range response.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return p.explain(err, 0)
		}
		for _, partition := range t.Partitions {
			if n := len(partition.Replicas); n < 2 {
				return fmt.Errorf("idemkafka: partition %d of topic %q has %d replica, and is lost with its broker: have a replication factor of 3", partition.Partition, p.topic, n)
			}
		}
	}
	return nil
}

func (p *Publisher) checkSettings(ctx context.Context) error {
	request := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, p.topic
	resource.ConfigNames = []string{minInSync, unclean}
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("idemkafka: asking for the settings of topic %q: %w", p.topic, err)
	}
	var errs []error
	for _, r := range response.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			errs = append(errs, fmt.Errorf("idemkafka: asking for the settings of topic %q: %w", p.topic, err))
		}
		for _, c := range r.Configs {
			if c.Value != nil {
				errs = append(errs, p.checkSetting(c.Name, *c.Value))
			}
		}
	}
	return errors.Join(errs...)
}

const (
	minInSync = "min.insync.replicas"
	unclean   = "unclean.leader.election.enable"
)

func (p *Publisher) checkSetting(name, value string) error {
	n, _ := strconv.Atoi(value)
	switch {
	case name == minInSync && n < 2:
		return fmt.Errorf("idemkafka: %s of topic %q is %s: a message is confirmed once a single broker has it, so set it to 2", minInSync, p.topic, value)
	case name == unclean && value == "true":
		return fmt.Errorf("idemkafka: %s of topic %q is true: a replica that lacks confirmed messages may become the leader, so set it to false", unclean, p.topic)
	}
	return nil
}
