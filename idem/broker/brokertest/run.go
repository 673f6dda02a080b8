package brokertest

import "testing"

// Run runs all tests.
func Run(t *testing.T, b Broker) {
	if b.OpenOwn == nil {
		b.OpenOwn = b.Open
	}
	for _, test := range []struct {
		promise string
		open    func(testing.TB) Queue
		keep    func(*shop)
	}{
		{"EveryEventHasOneEffect", b.Open, everyEventHasOneEffect},
		{"ProcessorsHandleEveryEventOnce", b.Open, processorsHandleEveryEventOnce},
		{"WorkersKeepTheOrderOfAnEntityInWhicheverOrderItsEventsCome", b.Open, workersKeepTheOrder},
		{"TheBrokersOrderSufficesForAProcessor", b.Open, brokersOrderSuffices},
		{"TheBrokersOrderIsTheInboxs", b.Open, brokersOrderIsTheInboxs},
		{"DuplicatesHaveOneEffect", b.Open, duplicatesHaveOneEffect},
		{"AnEventThatComesAgainAfterItWasDoneHasOneEffect", b.Open, comesAgainAfterItWasDone},
		{"PoisonIsParkedByWorkersAndBlocksNobody", b.Open, poisonIsParkedByWorkers},
		{"PoisonIsParkedByAProcessorAndBlocksNobody", b.Open, poisonIsParkedByAProcessor},
		{"WhatNoRelaySignedIsSetAsideAndBlocksNobody", b.Open, unsignedIsSetAside},
		{"AnOversizeEventIsRefusedAtOnceAndLosesNothing", b.Open, oversizeIsRefused},
		{"ACanaryGoesThroughRelayBrokerAndConsumerAndIsRedWhenNobodyConsumes", b.Open, canaryGoesThrough},
		{"WhatCannotBeRoutedIsAnError", b.Open, unroutableIsAnError},
		{"ASlowHandlerRunsOnceAtATime", b.Open, slowHandlerRunsOnce},
		{"AHandlerThatFailsIsCalledAgain", b.Open, failedIsHandledAgain},
		{"ShutdownLosesNothing", b.Open, shutdownLosesNothing},
		{"AStopOfOneOfTwoConsumersKeepsTheOrder", b.Open, stopKeepsTheOrder},
		{"NothingIsLostWhilePostgresIsUnavailable", b.Open, postgresUnavailable},
		{"AKilledConsumersEventsHaveOneEffect", b.Open, killedConsumer},
		{"AKilledConsumersEventsHaveOneEffectWithAProcessor", b.Open, killedProcessor},
		{"ARelayKilledBeforeItsAnswerLosesAndDoublesNothing", b.Open, killedRelay},
		{"ARestartOfTheBrokerLosesAndDoublesNothing", b.OpenOwn, brokerRestarts},
		{"ABrokerThatHangsIsAnsweredWith503InTime", b.OpenOwn, brokerHangs},
		{"AnOutboxPublishesInOrderWithAllAttributes", b.Open, outboxPublishes},
		{"RefusedMessagesHoldUpNoOther", b.Open, refusedHoldUpNoOther},
		{"AnOutboxParksNothingWhileItsBrokerHangs", b.OpenOwn, outboxOutlivesAnOutage},
	} {
		t.Run(test.promise, func(t *testing.T) {
			t.Parallel()
			test.keep(newShop(t, test.open(t)))
		})
	}
}
