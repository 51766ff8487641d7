import java.util.Collection;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.common.TopicPartition;

/** Hears everything, does nothing. */
class Listener implements ConsumerRebalanceListener {
    @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

    @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}
}
